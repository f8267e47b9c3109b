/// Command line of leasehold-cell.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "tools/cell/config/etcd_options.hpp"
#include "tools/cell/decide/names.hpp"

namespace leasehold::cell {

struct Options {
  CellAddress address;
  HostName host;
  std::string broker_socket;
  std::string socket;              ///< Where workers ask for unknown keys; empty: nowhere.
  std::vector<std::string> doors;  ///< See HostRecord.
  std::string state_directory;
  std::string log_level = "info";
};

/// The options, or the exit code to end with.
std::variant<Options, int> parse_options(int argc, char** argv);

}  // namespace leasehold::cell
