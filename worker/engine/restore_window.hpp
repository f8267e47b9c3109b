/// Decides how long requests wait for a revoked part of the weights. Pure: time is an argument.
///
///   restore failed ─► passing cause: wait, then WeightsLoading
///                  ─► broker lost:   BrokerLost
///                  ─► other cause:   MissingWeight, final: the part does not come back
#pragma once

#include <optional>

#include "common/clock.hpp"
#include "common/result.hpp"

namespace leasehold {

inline constexpr Duration kRestoreTimeout = std::chrono::minutes(1);

class RestoreWindow {
 public:
  /// A restore failed while requests wait. Returns the error that ends all of them, and closes the
  /// window; nothing while they wait and the restore is repeated.
  std::optional<Error> on_failed(const Error& error, TimePoint now);
  /// No request waits.
  void close() { began_.reset(); }

 private:
  std::optional<TimePoint> began_;  // of the first failure
};

}  // namespace leasehold
