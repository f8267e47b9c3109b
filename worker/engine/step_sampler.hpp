/// Passes samples of steps to operators: the engine puts a sample when one is due, and the I/O
/// thread takes the newest.
///
/// While sampling is off, it costs a step one atomic load. The sampler holds one sample: a newer
/// sample replaces one that was not taken.
/// Threads: `is_due` and `put` on the engine's thread; `set_interval` and `take` on the I/O thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "common/clock.hpp"
#include "common/ids.hpp"
#include "worker/schedule/scheduler.hpp"

namespace leasehold {

/// What one step computed, by tenant. Refused rows and rows of wrong proposals do not count.
struct StepSample {
  struct Tokens {
    std::uint32_t prefill = 0;
    std::uint32_t decode = 0;
  };
  std::uint64_t step = 0;
  TimePoint at;  ///< Just before the Commit unit.
  Duration duration{};
  std::uint32_t n_seqs = 0;
  std::uint32_t running = 0;
  std::uint32_t waiting = 0;
  std::map<TenantId, Tokens> tenants;

  /// Adds the rows of a sequence that are about to be committed. A row is decoded when it holds a
  /// token drawn under this lease; rows of the prompt and of text from earlier leases are prefill.
  void add(const Sequence& sequence, std::uint32_t n_rows);
};

class StepSampler {
 public:
  /// Zero turns sampling off and drops a sample that was not taken.
  void set_interval(Duration interval);

  /// True when a step that ends at `now` is a sample: the first one, or the first after the
  /// interval since the last.
  bool is_due(TimePoint now);
  /// Returns true when the I/O thread must be notified: no earlier sample was pending.
  bool put(StepSample sample);

  std::optional<StepSample> take();

 private:
  std::atomic<std::int64_t> interval_ns_{0};
  std::optional<TimePoint> last_;  // the end of the last sampled step; used by the engine's thread
  std::mutex mutex_;
  std::optional<StepSample> newest_;  // guarded by mutex_
};

}  // namespace leasehold
