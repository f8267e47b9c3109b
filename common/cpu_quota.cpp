#include "common/cpu_quota.hpp"

#include <algorithm>
#include <charconv>

#include "common/text_file.hpp"

namespace leasehold {
namespace {

constexpr const char* kGroups = "/sys/fs/cgroup";
constexpr std::size_t kMaxFileBytes = 1 << 16;

std::optional<std::uint64_t> microseconds_of(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole ? std::optional(number) : std::nullopt;
}

/// "/a/b" of the line "0::/a/b", which is the group of version 2.
std::optional<std::string_view> group_of(std::string_view lines) {
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    if (line.starts_with("0::/")) return line.substr(3);
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
  }
  return std::nullopt;
}

}  // namespace

std::optional<double> parse_cpu_max(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const auto quota = microseconds_of(text.substr(0, space));
  const auto period = microseconds_of(text.substr(space + 1));
  if (!quota || !period || *quota == 0 || *period == 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

std::optional<double> cpu_quota(const ReadFile& read) {
  const std::optional<std::string> lines = read("/proc/self/cgroup");
  if (!lines) return std::nullopt;
  const std::optional<std::string_view> group = group_of(*lines);
  if (!group) return std::nullopt;
  std::optional<double> smallest;
  std::string path(*group == "/" ? "" : *group);
  for (;;) {
    const auto text = read(kGroups + path + "/cpu.max");  // the root of all groups has none
    const auto quota = text ? parse_cpu_max(*text) : std::nullopt;
    if (quota) smallest = std::min(smallest.value_or(*quota), *quota);
    if (path.empty()) return smallest;
    path.resize(path.rfind('/'));
  }
}

std::optional<double> cpu_quota() {
  return cpu_quota([](const std::string& path) -> std::optional<std::string> {
    const auto text = read_text_file(path, kMaxFileBytes);
    return text ? std::optional(*text) : std::nullopt;
  });
}

}  // namespace leasehold
