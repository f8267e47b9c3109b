/// leasehold-broker: owns the memory and the state of every lease. See broker/README.md.
#include <chrono>

#include "broker/server/start/run_broker.hpp"
#include "common/fault_point.hpp"
#include "common/machine/process.hpp"
#include "common/machine/run_server.hpp"

namespace {

/// A short time slice lets the kernel schedule the broker soon after it wakes up. The slice is long
/// enough to store lease words and observe that the affected units have ended.
constexpr std::chrono::microseconds kTimeSlice{500};

}  // namespace

int main(int argc, char** argv) {
  using namespace leasehold;
  const auto parsed = parse_options(argc, argv);
  if (const int* code = std::get_if<int>(&parsed)) return *code;
  const auto& options = std::get<BrokerOptions>(parsed);
  set_not_dumpable();
  raise_descriptor_limit();
  request_short_time_slice(kTimeSlice);
  const ServerProgram program{.name = "leasehold-broker",
                              .log_level = options.log_level,
                              .memory_advice = "free memory, or lower --slots and --max-extents"};
  return run_server(program, [&]() -> Result<void> {
    TRY(arm_fault_points_from_environment());
    return run_broker(options, [argc, argv] { return parse_options(argc, argv); });
  });
}
