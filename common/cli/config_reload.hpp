/// What a reload of the configuration (SIGHUP) changes in a program that runs. Pure.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold {

/// The effective value of each key of a program, as --print-config prints it: "threads = 4".
using ConfigValues = std::map<std::string, std::string>;

struct ConfigReload {
  std::vector<std::string> changed;  ///< New values that apply from now on.
  std::vector<std::string> refused;  ///< New values that need a restart.
};

/// Copies new values of the keys in `live` into `running`; reports the others as refused.
ConfigReload reload_config(ConfigValues& running, const ConfigValues& wanted,
                           std::initializer_list<std::string_view> live);

/// Logs each changed or refused value, or that nothing changed.
void log_reload(const ConfigReload& reload);

}  // namespace leasehold
