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
  /// Called when a step failed because `part` is revoked while requests wait. Returns the error
  /// that ends all these requests, and then closes the window; returns nothing while they may wait.
  std::optional<Error> on_lost(std::size_t part, TimePoint now);
  /// Called when a restore failed while requests wait. Returns the same as `on_lost`; the caller
  /// repeats the restore.
  std::optional<Error> on_failed(const Error& error, TimePoint now);
  /// Called when `part` was restored: the timeout of a failing restore starts anew for the next
  /// part.
  void on_restored(std::size_t part);
  /// Called when a step succeeded, or when no request waits.
  void close() { *this = {}; }

 private:
  std::optional<TimePoint> failing_since_;    // since when restores of the missing part fail
  std::set<std::size_t> restored_;            // parts restored since the window opened
  std::optional<TimePoint> repeating_since_;  // when a restored part was first revoked again
};

}  // namespace leasehold
