/// Maps each running request to its stop slot, so that any thread can stop it within one unit.
///
/// Cancels, closed connections and passed deadlines stop requests this way.
///
/// Threads: any; only the engine thread calls `update`.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "common/machine/boottime_timer.hpp"
#include "ipc/segment/gate_set.hpp"
#include "worker/schedule/sequence.hpp"

namespace leasehold {

struct RunningRequest {
  RequestId engine_request_id;
  LeaseId lease;
  /// Distinguishes a request from an earlier one with the same id, lease and stop slot.
  std::uint64_t admission = 0;
  std::optional<TimePoint> deadline;
  bool operator==(const RunningRequest&) const = default;
};

class RunningRequests {
 public:
  using StopSlots = std::array<std::optional<RunningRequest>, kMaxStepSequences>;

  const StopFlags& stops() const { return stops_; }

  /// Sets the requests of the next step; called between steps. A stop slot whose request changed
  /// starts with its flag cleared.
  void update(const StopSlots& stop_slots);

  /// Returns false when the request is not running.
  bool stop(const RequestId& engine_request_id, LocalStop reason);

  /// Stops every request for which `due` returns a reason.
  using Due = std::function<LocalStop(const RunningRequest&)>;
  void stop_due(const Due& due);

  /// Calls `visit` for every running request that is not stopped, under the lock.
  void for_each(const std::function<void(const RunningRequest&)>& visit) const;

  /// Sets the timer to wake whenever the running requests change; null: none.
  void wake_on_change(BoottimeTimer* alarm);

 private:
  mutable std::mutex mutex_;
  BoottimeTimer* alarm_ = nullptr;
  StopSlots stop_slots_;
  StopFlags stops_;
};

/// The running sequences by stop slot, for RunningRequests::update.
RunningRequests::StopSlots stop_slots_of(std::span<const std::unique_ptr<Sequence>> running);

}  // namespace leasehold
