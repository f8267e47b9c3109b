/// The control groups of this process, and the files of their controllers.
///
/// Source: cgroups(7); Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst of the
/// kernel.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold {

/// The text of a file, or nothing if it cannot be read.
using ReadFile = std::function<std::optional<std::string>(const std::string& path)>;

/// Reads files of at most 64 KiB.
ReadFile read_system_file();

/// The directories of the process's control group and of those above it, nearest first; empty when
/// they are not known. `controller` names one of version 1, such as "memory"; empty: version 2.
std::vector<std::string> control_group_directories(const ReadFile& read,
                                                   std::string_view controller = {});

/// A whole decimal number, with or without a newline; nothing for other text, such as "max".
std::optional<std::uint64_t> parse_group_number(std::string_view text);

struct GroupMemory {
  std::uint64_t limit_bytes = 0;      ///< The smallest of the groups.
  std::uint64_t available_bytes = 0;  ///< What the fullest group still has, with its file cache.
  std::string limit_file;             ///< The file with that limit, for messages.
};

/// Of the groups of either version; nothing if none has a limit.
std::optional<GroupMemory> group_memory(const ReadFile& read);

}  // namespace leasehold
