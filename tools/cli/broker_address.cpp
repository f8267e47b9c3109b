#include "tools/cli/broker_address.hpp"

#include <cstdlib>

namespace leasehold::cli {
namespace {

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

}  // namespace

Environment read_environment() {
  return {.broker = variable("LEASEHOLD_BROKER"), .runtime_dir = variable("XDG_RUNTIME_DIR")};
}

std::string broker_address(const std::optional<std::string>& given,
                           const Environment& environment) {
  if (given) return *given;
  if (!environment.broker.empty()) return environment.broker;
  if (!environment.runtime_dir.empty()) return environment.runtime_dir + "/leasehold/broker.sock";
  return "/run/leasehold/broker.sock";
}

}  // namespace leasehold::cli
