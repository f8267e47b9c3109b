/// The files of the page, compiled into the program.
#pragma once

#include <span>
#include <string_view>

namespace leasehold::monitor {

struct PageFile {
  std::string_view name;  ///< "main.js"
  std::string_view text;
};

/// The files of tools/monitor/page; tools/cmake/embed_files.cmake generates the definition.
std::span<const PageFile> page_files();

}  // namespace leasehold::monitor
