/// Samples of steps for operators: the engine makes one when it is due, the I/O thread takes the
/// newest.
///
/// While the sampling is off, a step costs one atomic load. The hand-over is one slot: a sample
/// that was not taken is replaced by a newer one.
/// Threads: `is_due` and `put` on the engine's; `set_interval` and `take` on the I/O thread.
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

/// What one step computed, by tenant. Rows that were refused do not count, nor those of proposals
/// that were wrong.
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
  /// Zero ends the sampling and drops what was not taken.
  void set_interval(Duration interval);

  /// True when a step that ends at `now` is a sample: the first one, or the first after the
  /// interval since the last.
  bool is_due(TimePoint now);
  /// Returns true when the slot was empty: the I/O thread does not know of a sample yet.
  bool put(StepSample sample);

  std::optional<StepSample> take();

 private:
  std::atomic<std::int64_t> interval_ns_{0};
  std::optional<TimePoint> last_;  // the end of the last sampled step; the engine's
  std::mutex mutex_;
  std::optional<StepSample> newest_;  // guarded by mutex_
};

}  // namespace leasehold
