/// leasehold-broker: owns the memory and the truth about every lease. broker/README.md
#include <fmt/format.h>

#include <cstdio>

#include "broker/server/server.hpp"
#include "common/fault_point.hpp"
#include "common/log.hpp"
#include "common/next_step.hpp"
#include "common/process.hpp"

namespace {

/// Soon on a core when called, and then long enough there to flip words and see the work on them
/// end.
constexpr std::chrono::microseconds kTurn{500};

int complain(const leasehold::Error& error) {
  fmt::print(stderr, "leasehold-broker: {} ({}); next: {}\n", error.detail, name(error.code),
             next_step(error.code));
  return leasehold::exit_code(error.code);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace leasehold;
  const auto parsed = parse_options(argc, argv);
  if (const int* code = std::get_if<int>(&parsed)) return *code;
  const auto& options = std::get<BrokerOptions>(parsed);
  forbid_dumping();
  raise_descriptor_limit();
  ask_for_short_turns(kTurn);
  set_up_log("leasehold-broker", options.log_level);
  if (const auto armed = arm_fault_points_from_environment(); !armed) {
    return complain(armed.error());
  }
  if (const auto served = run_broker(options); !served) return complain(served.error());
  return 0;
}
