#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>

#include <exception>

#include "common/fault_point.hpp"
#include "common/log.hpp"
#include "common/next_step.hpp"
#include "common/process.hpp"
#include "worker/worker_program.hpp"

namespace {

int explain(const leasehold::Error& error);

/// A model can ask for more scratch than there is memory.
int run(const leasehold::WorkerOptions& options) try {
  const auto done = leasehold::run_worker(options);
  return done ? 0 : explain(done.error());
} catch (const std::exception& error) {  // bad_alloc, length_error
  return explain(
      {leasehold::Errc::OutOfMemory,
       fmt::format("{}: the model needs more memory than this machine has free", error.what())});
}

int explain(const leasehold::Error& error) {
  fmt::print(stderr, "leasehold-worker: {} ({}); next: {}\n", error.detail,
             leasehold::name(error.code), leasehold::next_step(error.code));
  return leasehold::exit_code(error.code);
}

}  // namespace

int main(int argc, char** argv) {
  // A driver may load a kernel when it is first asked for, and wait for the card then: in the
  // middle of a launch that a revocation waits for. Read when the driver starts; no thread runs
  // yet.
  ::setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  int exit_code = 0;
  const auto options = leasehold::parse_options(argc, argv, exit_code);
  if (!options) return exit_code;
  leasehold::set_up_log("leasehold-worker", options->log_level);
  leasehold::forbid_dumping();
  leasehold::raise_descriptor_limit();
  ::signal(SIGPIPE, SIG_IGN);
  if (const auto armed = leasehold::arm_fault_points_from_environment(); !armed) {
    return explain(armed.error());
  }
  return run(*options);
}
