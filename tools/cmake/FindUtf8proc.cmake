# utf8proc by pkg-config; defines Utf8proc::Utf8proc.
find_package(PkgConfig REQUIRED)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)
if(NOT TARGET Utf8proc::Utf8proc)
  add_library(Utf8proc::Utf8proc ALIAS PkgConfig::UTF8PROC)
endif()
set(Utf8proc_FOUND TRUE)
