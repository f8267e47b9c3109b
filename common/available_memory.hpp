/// Memory that this machine can still give to programs.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/result.hpp"

namespace leasehold {

/// MemAvailable of /proc/meminfo in bytes. Errors: FileCorrupt when the text has no such line;
/// those of read_text_file.
Result<std::uint64_t> available_memory_bytes();

/// The same from the text of /proc/meminfo. Pure.
Result<std::uint64_t> parse_available_memory(std::string_view meminfo);

}  // namespace leasehold
