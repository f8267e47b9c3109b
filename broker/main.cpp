/// leasehold-broker: owns the memory and the state of every lease. See broker/README.md.
#include <signal.h>

#include <chrono>

#include "broker/server/run_broker.hpp"
#include "common/fault_point.hpp"
#include "common/log.hpp"
#include "common/print_error.hpp"
#include "common/process.hpp"

namespace {

/// A short slice lets the kernel schedule the broker soon after it wakes up. It is long enough to
/// store lease words and observe that the affected units have ended.
constexpr std::chrono::microseconds kTimeSlice{500};

constexpr std::string_view kProgram = "leasehold-broker";

}  // namespace

int main(int argc, char** argv) {
  using namespace leasehold;
  const auto parsed = parse_options(argc, argv);
  if (const int* code = std::get_if<int>(&parsed)) return *code;
  const auto& options = std::get<BrokerOptions>(parsed);
  set_not_dumpable();
  ::signal(SIGXFSZ, SIG_IGN);  // a file size limit is a full disk: a write fails, the broker stays
  raise_descriptor_limit();
  request_short_time_slice(kTimeSlice);
  set_up_log(kProgram, options.log_level);
  if (const auto armed = arm_fault_points_from_environment(); !armed) {
    return print_error(kProgram, armed.error());
  }
  if (const auto served = run_broker(options, [argc, argv] { return parse_options(argc, argv); });
      !served)
    return print_error(kProgram, served.error());
  return 0;
}
