/// Who stands at which stop_slot of the stop running_requests, for threads other than the engine's.
///
/// A client that goes away, a cancel, a deadline stop a running sequence within one unit: any
/// thread looks the stop_slot up here and sets its stop word.
///
/// Threads: any; the engine thread alone changes occupants.
#pragma once

#include <array>
#include <functional>
#include <mutex>
#include <optional>

#include "common/boottime_timer.hpp"
#include "ipc/segment/gate_set.hpp"
#include "worker/schedule/request.hpp"

namespace leasehold {

struct RunningRequest {
  RequestId engine_request_id;
  LeaseId lease;
  /// Tells a request from an earlier one that had the same id, lease and stop_slot.
  std::uint64_t admission = 0;
  std::optional<TimePoint> deadline;
  bool operator==(const RunningRequest&) const = default;
};

class RunningRequests {
 public:
  using StopSlots = std::array<std::optional<RunningRequest>, kMaxStepSequences>;

  const StopFlags& stops() const { return stops_; }

  /// Engine thread, between steps. A stop_slot whose running_request changed starts without a stop.
  void update(const StopSlots& stop_slots);

  /// False when the request is not running.
  bool stop(const RequestId& engine_request_id, LocalStop reason);

  /// Stops whatever `due` gives a reason for.
  using Due = std::function<LocalStop(const RunningRequest&)>;
  void stop_due(const Due& due);

  /// Calls `visit` for every running_request that has not been stopped, under the lock.
  void for_each(const std::function<void(const RunningRequest&)>& visit) const;

  /// Rings `alarm` whenever occupants change, from now on; null: nobody's.
  void wake_on_change(BoottimeTimer* alarm);

 private:
  mutable std::mutex mutex_;
  BoottimeTimer* alarm_ = nullptr;
  StopSlots stop_slots_;
  StopFlags stops_;
};

}  // namespace leasehold
