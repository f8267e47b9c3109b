/// Command line of leasehold-cell.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "ipc/etcd/client.hpp"
#include "tools/cell/decide/names.hpp"

namespace leasehold::cell {

struct Options {
  etcd::ClientOptions etcd;
  CellName cell;
  HostName host;
  std::string door;
  std::string state_directory;
  std::string log_level = "info";
};

/// The options, or the exit code to end with.
std::variant<Options, int> parse_options(int argc, char** argv);

}  // namespace leasehold::cell
