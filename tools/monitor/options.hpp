/// Command line of leasehold-monitor.
#pragma once

#include <string>
#include <variant>

#include "ipc/http/http_address.hpp"

namespace leasehold::monitor {

struct Options {
  std::string broker_socket;
  http::Address listen;
  std::string log_level = "info";
};

/// The options, or the exit code to end with.
std::variant<Options, int> parse_options(int argc, char** argv);

}  // namespace leasehold::monitor
