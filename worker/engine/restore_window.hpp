/// Decides how long requests wait for revoked parts of the weights. Pure: time is an argument.
///
///   restore failed ─► passing cause: wait, then WeightsLoading
///                  ─► broker lost:   BrokerLost
///                  ─► other cause:   MissingWeight, final: the part does not come back
///   part revoked again before a step succeeds ─► wait, then WeightsLoading
#pragma once

#include <cstddef>
#include <optional>
#include <set>

#include "common/clock.hpp"
#include "common/result.hpp"

namespace leasehold {

inline constexpr Duration kRestoreTimeout = std::chrono::minutes(1);

class RestoreWindow {
 public:
  /// A step failed while requests wait, because `part` is revoked. Returns the error that ends all
  /// of them, and closes the window; nothing while they wait.
  std::optional<Error> on_lost(std::size_t part, TimePoint now);
  /// A restore failed while requests wait. Returns as `on_lost`; the restore is repeated.
  std::optional<Error> on_failed(const Error& error, TimePoint now);
  /// The next part has the whole time.
  void on_restored(std::size_t part);
  /// A step succeeded, or no request waits.
  void close() { *this = {}; }

 private:
  std::optional<TimePoint> failing_since_;    // the part that is missing
  std::set<std::size_t> restored_;            // parts, since the window opened
  std::optional<TimePoint> repeating_since_;  // one of them was revoked again
};

}  // namespace leasehold
