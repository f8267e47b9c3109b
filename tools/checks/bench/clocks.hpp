/// The four clocks of a revocation, on real processes, with flips at random phases of the token.
///
/// t_refuse is stamped by the thread whose poll refused, t_error when the holder has read its typed
/// end from the socket (t_handed: when the worker had written it there), t_quiet when the broker
/// saw that no unit can touch the memory any more, t_reuse when it is scrubbed and leasable. All
/// start at the stamp of the flip and are boot time.
#pragma once

#include <string>
#include <vector>

#include "tools/checks/bench/run_queue.hpp"
#include "tools/checks/bench/statistics.hpp"
#include "tools/checks/bench/system.hpp"

namespace leasehold::bench {

struct ClockSetup {
  std::string model;  ///< For people.
  std::string model_path;
  std::string bin_dir;
  std::uint32_t tenants = 1;
  std::uint32_t threads = 1;
  std::uint32_t samples = 100;
  std::uint64_t seed = 1;
};

/// In µs from the flip; -1: did not happen, as t_refuse of a tenant that was between two requests.
struct ClockSample {
  LeaseId lease;
  TimePoint ended;  ///< Its holder read the typed end. Zero: there was no stream to end.
  double refuse_us = -1;
  double handed_us = -1;  ///< The typed end was written to the holder's socket, says the worker.
  double error_us = -1;
  double quiet_us = -1;
  double reuse_us = -1;
  std::string site;             ///< Where the refusing poll stood, e.g. "lm_head".
  double engine_waited_us = 0;  ///< The engine's thread stood without a core on_held.
};

struct ClockRun {
  ClockSetup setup;
  std::vector<ClockSample> samples;
  RunQueue worker;  ///< All threads of the process, over the whole run.
  RunQueue broker;
  double seconds = 0;
  double load = 0;
};

/// Errors: those of System; TimedOut when tenants do not run or an end does not come.
Result<ClockRun> measure_clocks(const ClockSetup& setup);

/// Values of one clock over all samples that have it. `undisturbed`: only those during which the
/// engine's thread always had its core.
enum class ClockName { Refuse, Handed, Error, Quiet, Reuse };
std::vector<double> values_of(const ClockRun& run, ClockName clock, bool undisturbed);

}  // namespace leasehold::bench
