# Writes a C++ source that holds text files, at build time:
#   cmake -DOUTPUT=page_files.cpp -DFOLDER=DIR "-DFILES=a.html b.js" -P embed_files.cmake
# It defines leasehold::monitor::page_files (tools/monitor/page_files.hpp).
string(REPLACE " " ";" names "${FILES}")
set(entries "")
foreach(name IN LISTS names)
  file(READ "${FOLDER}/${name}" text)
  string(FIND "${text}" ")embedded\"" found)
  if(NOT found EQUAL -1)
    message(FATAL_ERROR "${name} has the mark that ends an embedded text")
  endif()
  string(APPEND entries "    {\"${name}\", R\"embedded(${text})embedded\"},\n")
endforeach()
file(WRITE "${OUTPUT}" "#include \"tools/monitor/page_files.hpp\"

namespace leasehold::monitor {

std::span<const PageFile> page_files() {
  static constexpr PageFile kFiles[] = {
${entries}  };
  return kFiles;
}

}  // namespace leasehold::monitor
")
