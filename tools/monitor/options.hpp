/// Command line of leasehold-monitor.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ipc/http/http_address.hpp"
#include "ipc/http/http_host.hpp"
#include "tools/cell/config/etcd_options.hpp"

namespace leasehold::monitor {

struct Options {
  std::string broker_socket;
  http::Address listen;
  http::HostRule hosts;  ///< On a Unix socket any host is allowed: a web site cannot reach it.
  bool page = true;
  std::vector<http::Address> worker_metrics;  ///< Where workers serve their metrics.
  std::optional<cell::CellAddress> cell;      ///< Nothing: only the hosts' own brokers are shown.
  std::string log_level = "info";
};

/// The options, or the exit code to end with.
std::variant<Options, int> parse_options(int argc, char** argv);

}  // namespace leasehold::monitor
