#include "common/machine/cpu_quota.hpp"

#include <algorithm>

namespace leasehold {

std::optional<double> parse_cpu_max(std::string_view text) {
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const auto quota_us = parse_group_number(text.substr(0, space));
  const auto period_us = parse_group_number(text.substr(space + 1));
  if (!quota_us || !period_us || *quota_us == 0 || *period_us == 0) return std::nullopt;
  return static_cast<double>(*quota_us) / static_cast<double>(*period_us);
}

std::optional<double> cpu_quota(const ReadFile& read) {
  std::optional<double> smallest;
  for (const std::string& directory : control_group_directories(read)) {
    const auto text = read(directory + "/cpu.max");  // the root group does not have this file
    const auto quota = text ? parse_cpu_max(*text) : std::nullopt;
    if (quota) smallest = std::min(smallest.value_or(*quota), *quota);
  }
  return smallest;
}

std::optional<double> cpu_quota() {
  return cpu_quota(system_file_reader());
}

}  // namespace leasehold
