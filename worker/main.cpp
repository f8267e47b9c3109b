#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>

#include <chrono>
#include <exception>
#include <new>
#include <stdexcept>
#include <utility>

#include "common/fault_point.hpp"
#include "common/log.hpp"
#include "common/print_error.hpp"
#include "common/process.hpp"
#include "worker/worker_program.hpp"

namespace {

constexpr std::string_view kProgram = "leasehold-worker";

/// Of the engine and the backend's threads. With a long slice they run after the threads of sockets
/// when both are ready, so that lines of tenants delay every unit.
constexpr std::chrono::microseconds kTimeSlice{500};

int report_no_memory(const std::exception& error) {
  return leasehold::print_error(
      kProgram, leasehold::Error{leasehold::Errc::OutOfMemory,
                                 fmt::format("{}: this process ran out of memory; free memory, or "
                                             "use a smaller --token-budget or model",
                                             error.what())});
}

/// A model may need more scratch than the machine has memory.
int run(const leasehold::WorkerOptions& options, leasehold::ReloadOptions reload) try {
  const auto done = leasehold::run_worker(options, std::move(reload));
  return done ? 0 : leasehold::print_error(kProgram, done.error());
} catch (const std::bad_alloc& error) {
  return report_no_memory(error);
} catch (const std::length_error& error) {
  return report_no_memory(error);
} catch (const std::exception& error) {
  return leasehold::print_error(
      kProgram, leasehold::Error{
                    leasehold::Errc::SystemError,
                    fmt::format("unexpected exception: {}; report it with the log", error.what())});
}

}  // namespace

int main(int argc, char** argv) {
  // With lazy loading the driver may wait for the GPU at the first launch of a kernel, which would
  // delay a revocation. The driver reads the variable at its start; no other thread runs yet.
  ::setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  int exit_code = 0;
  const auto options = leasehold::parse_options(argc, argv, exit_code);
  if (!options) return exit_code;
  leasehold::set_up_log(kProgram, options->log_level);
  leasehold::set_not_dumpable();
  leasehold::raise_descriptor_limit();
  leasehold::request_short_time_slice(kTimeSlice);
  ::signal(SIGXFSZ, SIG_IGN);
  ::signal(SIGPIPE, SIG_IGN);
  if (const auto armed = leasehold::arm_fault_points_from_environment(); !armed) {
    return leasehold::print_error(kProgram, armed.error());
  }
  return run(*options, [argc, argv] {
    int ignored = 0;
    return leasehold::parse_options(argc, argv, ignored);
  });
}
