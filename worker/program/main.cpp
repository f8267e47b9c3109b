#include <stdlib.h>

#include <chrono>

#include "common/cli/print_error.hpp"
#include "common/fault_point.hpp"
#include "common/machine/process.hpp"
#include "common/machine/run_server.hpp"
#include "worker/compute/compute.hpp"
#include "worker/program/worker_program.hpp"

namespace {

constexpr std::string_view kProgram = "leasehold-worker";

/// The kernel's time slice for the engine's and the backend's threads. With a longer slice, the
/// socket threads would run first when both are ready, and tenants' input would delay every unit.
constexpr std::chrono::microseconds kTimeSlice{500};

/// A model may need more scratch than the machine has memory.
constexpr std::string_view kMemoryAdvice = "free memory, or use a smaller --token-budget or model";

}  // namespace

int main(int argc, char** argv) {
  using namespace leasehold;
  // With lazy loading the driver may wait for the GPU at the first launch of a kernel, which would
  // delay a revocation. The driver reads the variable at its start; no other thread runs yet.
  ::setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  int exit_code = 0;
  const auto options = parse_options(argc, argv, exit_code);
  if (!options) return exit_code;
  set_not_dumpable();
  raise_descriptor_limit();
  request_short_time_slice(kTimeSlice);
  // This precedes the start of all other threads, which inherit the affinity.
  if (const auto excluded = exclude_compute_cpus(options->compute_cpus); !excluded)
    return print_error(kProgram, excluded.error());
  const ServerProgram program{
      .name = kProgram, .log_level = options->log_level, .memory_advice = kMemoryAdvice};
  return run_server(program, [&]() -> Result<void> {
    TRY(arm_fault_points_from_environment());
    return run_worker(*options, [argc, argv] {
      int ignored = 0;
      return parse_options(argc, argv, ignored);
    });
  });
}
