#include "common/machine/control_group.hpp"

#include <algorithm>
#include <charconv>

#include "common/machine/text_file.hpp"

namespace leasehold {
namespace {

constexpr std::size_t kMaxFileBytes = 1 << 16;
/// Version 1 writes the largest multiple of a page for "no limit".
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 62;

/// The memory files of one version of control groups.
struct MemoryFiles {
  std::string_view controller, limit, usage;
  std::string_view inactive_cache, active_cache;  ///< Lines of memory.stat.
};
constexpr MemoryFiles kVersions[] = {
    {"", "/memory.max", "/memory.current", "inactive_file ", "active_file "},
    {"memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file ",
     "total_active_file "}};

/// The lines of a text, without their newlines.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    lines.push_back(text.substr(0, text.find('\n')));
    text.remove_prefix(std::min(lines.back().size() + 1, text.size()));
  }
  return lines;
}

/// True if `list`, "cpu,cpuacct", has the controller. Version 2 has the empty list.
bool names_controller(std::string_view list, std::string_view controller) {
  if (controller.empty()) return list.empty();
  for (std::string_view rest = list; !rest.empty();) {
    const std::string_view name = rest.substr(0, rest.find(','));
    if (name == controller) return true;
    rest.remove_prefix(std::min(name.size() + 1, rest.size()));
  }
  return false;
}

/// "/a/b" of the line "0::/a/b" or "4:memory:/a/b".
std::optional<std::string> group_of(std::string_view lines, std::string_view controller) {
  for (const std::string_view line : lines_of(lines)) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(":/", first == std::string_view::npos ? first : first + 1);
    if (second == std::string_view::npos) continue;
    if (names_controller(line.substr(first + 1, second - first - 1), controller))
      return std::string(line.substr(second + 1));
  }
  return std::nullopt;
}

std::uint64_t value_of(std::string_view statistics, std::string_view name) {
  for (const std::string_view line : lines_of(statistics))
    if (line.starts_with(name)) return parse_group_number(line.substr(name.size())).value_or(0);
  return 0;
}

/// The memory in use without the file cache, which the kernel drops before it kills a process.
std::uint64_t used_bytes(const ReadFile& read, const std::string& directory,
                         const MemoryFiles& files) {
  const auto usage = read(directory + std::string(files.usage));
  const std::uint64_t used = usage ? parse_group_number(*usage).value_or(0) : 0;
  const std::string statistics = read(directory + "/memory.stat").value_or("");
  const std::uint64_t cache =
      value_of(statistics, files.inactive_cache) + value_of(statistics, files.active_cache);
  return used - std::min(used, cache);
}

void add_groups(const ReadFile& read, const MemoryFiles& files, std::optional<GroupMemory>& found) {
  for (const std::string& directory : control_group_directories(read, files.controller)) {
    const std::string limit_file = directory + std::string(files.limit);
    const auto text = read(limit_file);
    const auto limit = text ? parse_group_number(*text) : std::nullopt;
    if (!limit || *limit >= kNoLimit) continue;
    const std::uint64_t available = *limit - std::min(*limit, used_bytes(read, directory, files));
    if (!found) found = GroupMemory{*limit, available, limit_file};
    found->available_bytes = std::min(found->available_bytes, available);
    if (*limit >= found->limit_bytes) continue;
    found->limit_bytes = *limit;
    found->limit_file = limit_file;
  }
}

}  // namespace

ReadFile system_file_reader() {
  return [](const std::string& path) -> std::optional<std::string> {
    auto text = read_text_file(path, kMaxFileBytes);
    return text ? std::optional(*std::move(text)) : std::nullopt;
  };
}

std::vector<std::string> control_group_directories(const ReadFile& read,
                                                   std::string_view controller) {
  const std::optional<std::string> lines = read("/proc/self/cgroup");
  const auto group = lines ? group_of(*lines, controller) : std::nullopt;
  if (!group) return {};
  std::string root = "/sys/fs/cgroup";
  if (!controller.empty()) root += '/' + std::string(controller);
  std::vector<std::string> directories;
  std::string path = *group == "/" ? "" : *group;
  for (;;) {
    directories.push_back(root + path);
    if (path.empty()) return directories;
    path.resize(path.rfind('/'));
  }
}

std::optional<std::uint64_t> parse_group_number(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = error == std::errc{} && end == text.data() + text.size();
  return is_whole ? std::optional(number) : std::nullopt;
}

std::optional<GroupMemory> group_memory(const ReadFile& read) {
  std::optional<GroupMemory> found;
  for (const MemoryFiles& files : kVersions) add_groups(read, files, found);
  return found;
}

}  // namespace leasehold
