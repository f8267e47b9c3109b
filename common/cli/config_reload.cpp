#include "common/cli/config_reload.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace leasehold {

ConfigReload reload_config(ConfigValues& running, const ConfigValues& wanted,
                           std::initializer_list<std::string_view> live) {
  ConfigReload reload;
  for (const auto& [key, value] : wanted) {
    std::string& current = running[key];
    if (current == value) continue;
    const bool is_live = std::ranges::find(live, key) != live.end();
    (is_live ? reload.changed : reload.refused).push_back(value);
    if (is_live) current = value;
  }
  return reload;
}

void log_reload(const ConfigReload& reload) {
  for (const std::string& value : reload.changed) spdlog::info("configuration changed: {}", value);
  for (const std::string& value : reload.refused)
    spdlog::warn("configuration not changed, restart needed: {}", value);
  if (reload.changed.empty() && reload.refused.empty())
    spdlog::info("configuration reloaded, nothing changed");
}

}  // namespace leasehold
