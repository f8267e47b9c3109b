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

/// Returns a function that reads files of at most 64 KiB.
ReadFile system_file_reader();

/// The directories of the process's control group and of those above it, nearest first; empty when
/// they are not known. `controller` names a controller of version 1, such as "memory"; empty means
/// version 2.
std::vector<std::string> control_group_directories(const ReadFile& read,
                                                   std::string_view controller = {});

/// A whole decimal number, with or without a newline; nothing for other text, such as "max".
std::optional<std::uint64_t> parse_group_number(std::string_view text);

struct GroupMemory {
  std::uint64_t limit_bytes = 0;  ///< The smallest limit of all groups.
  /// The least that any group with a limit can still use. File cache counts as unused.
  std::uint64_t available_bytes = 0;
  std::string limit_file;  ///< The file that holds `limit_bytes`, for messages.
};

/// The memory of this process's groups, of both versions; nothing if no group has a limit.
std::optional<GroupMemory> group_memory(const ReadFile& read);

}  // namespace leasehold
