/// Runs a worker process, from its files to its last step. Each stage is an object that needs the
/// earlier ones, and owns what exists from then on:
///
///   OpenedWorker    files, sockets and threads; the broker is not called yet
///   AttachedWorker  the session with the broker, whose calls arrive from here on
///   LoadedWorker    the backend, and an engine with its weights
///   ReadyWorker     the servers; announced to the broker
///
/// The threads have these names in `ps -L`, except the first, which has the program's name:
///
///   main       attaches, loads, then runs the engine; thread 0 of the backend
///   compute    threads 1 … n-1 of the backend
///   io         the broker's socket
///   tenants    the tenants' sockets, so that tenants' input delays no answer to the broker
///   mapper     maps granted extents and makes their pages
///   unmapper   unmaps fenced leases
///   lines      parses tenants' long lines, so that they delay no stream
///   parser     parses tenants' requests: templates, tokens, grammars
///   adapters   with --adapters: reads their files
///   digest     reads the model file for its digest, until the worker is ready
///   watcher    stops requests at their deadlines
///   spill      with a lent spill file: seals, writes and reads blocks
///   index      with --kv-index-url: sends the ids of ended requests to the index
///   name-lookup looks up the address of the index or collector
///   traces     with --otlp-endpoint: sends spans to the collector
///   http       with --http: the HTTP server
///   http-parse with --http: parses long bodies, and tokenizes; two threads
///   metrics    with --metrics: makes and sends the page of metrics
///
/// The first thread has a time slice of 500 µs and those of sockets 100 µs
/// (request_short_time_slice); mapper, lines, parser, adapters, spill, http-parse, index, traces
/// and metrics have a smaller share (use_batch_scheduling).
#include <stdlib.h>

#include <chrono>
#include <utility>

#include "common/cli/print_error.hpp"
#include "common/fault_point.hpp"
#include "common/machine/process.hpp"
#include "common/machine/run_server.hpp"
#include "worker/compute/compute.hpp"
#include "worker/program/stages/ready_worker.hpp"

namespace {

using namespace leasehold;

constexpr std::string_view kProgram = "leasehold-worker";

/// The kernel's time slice for the engine's and the backend's threads. With a longer slice, the
/// socket threads would run first when both are ready, and tenants' input would delay every unit.
constexpr std::chrono::microseconds kTimeSlice{500};

/// A model may need more scratch than the machine has memory.
constexpr std::string_view kMemoryAdvice = "free memory, or use a smaller --token-budget or model";

/// Runs until a signal (success), or until the broker is lost and the last lease has expired
/// (BrokerLost). SIGTERM drains (worker_stop.hpp); a second SIGTERM, or SIGINT, stops at once.
/// SIGHUP calls `reload`. Errors: those of start-up; the device's fault.
Result<void> run_worker(const WorkerOptions& options, ReloadOptions reload) {
  const auto opened = TRY(OpenedWorker::open(options));
  const auto attached = TRY(AttachedWorker::attach(*opened));
  const auto loaded = TRY(LoadedWorker::load(*attached));
  const auto ready = TRY(ReadyWorker::start(*loaded, std::move(reload)));
  return ready->run();
}

}  // namespace

int main(int argc, char** argv) {
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
