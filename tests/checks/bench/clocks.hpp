/// Measures the clocks of a revocation on real processes, at random phases of the token.
///
/// All clocks start when the broker stores the lease word (the flip) and are boot time. They end:
/// t_refuse when a worker thread's poll refuses a unit;
/// t_handed when the worker has written the typed end to the holder's socket;
/// t_error when the holder has read it;
/// t_quiet when the broker sees that no unit can touch the memory any more;
/// t_reuse when the memory is scrubbed and free.
#pragma once

#include <string>
#include <vector>

#include "tests/checks/bench/adapter_files.hpp"
#include "tests/checks/bench/run_queue.hpp"
#include "tests/checks/bench/system.hpp"

namespace leasehold::bench {

struct ClockSetup {
  std::string model;  ///< Name in the report.
  std::string model_path;
  std::string bin_dir;
  std::uint32_t tenants = 1;
  std::uint32_t threads = 1;
  std::uint32_t samples = 100;
  std::uint64_t seed = 1;
  std::string capacity = "512MiB";
  std::vector<std::string> broker_options = {};
  std::vector<std::string> worker_options = {};
  /// The files of as many adapters as tenants. Each tenant's requests use its own one, whose lease
  /// is revoked instead of the tenant's. Null: none. Outlives the measurement.
  const AdapterFiles* adapters = nullptr;
};

/// In µs from the flip. -1: did not happen; for example, t_refuse of a tenant between two requests.
struct ClockTimes {
  double refuse_us = -1;
  /// `refuse_us` if a unit before the commit was refused. Other flips happen during the commit, or
  /// between two steps, where no unit can run.
  double refuse_in_step_us = -1;
  double handed_us = -1;
  double error_us = -1;
  double quiet_us = -1;
  double reuse_us = -1;
};

struct ClockSample {
  LeaseId lease;
  TimePoint ended;  ///< When the holder read the typed end. Zero: no request was running.
  ClockTimes times;
  /// For each clock, how long the threads on its path were ready but had no core, during the flip.
  ClockTimes run_queue_delay;
  std::string site;  ///< Launch site of the refused unit, e.g. "lm_head".
};

struct ClockRun {
  ClockSetup setup;
  std::vector<ClockSample> samples;
  RunQueue worker;  ///< Sum over all threads and the whole run.
  RunQueue broker;
  double seconds = 0;
  double load = 0;
};

/// Errors: those of System; TimedOut when tenants do not run or a request does not end.
Result<ClockRun> measure_clocks(const ClockSetup& setup);

/// Values of one clock over all samples that have it, with or without the sample's run-queue delay.
/// Without the delay, the values are the system's own work and the kernel's wake-ups; at least 0.
std::vector<double> values_of(const ClockRun& run, double ClockTimes::* clock,
                              bool with_run_queue_delay);

}  // namespace leasehold::bench
