/// Waits for descriptors with a timeout, and stops on Ctrl-C.
#pragma once

#include <span>
#include <vector>

#include "common/clock.hpp"
#include "common/machine/unique_fd.hpp"

namespace leasehold::runner {

/// Reads SIGINT and SIGTERM from a descriptor, so that they do not end this process before it has
/// ended its children. Create one per process, before any thread or child.
class Poller {
 public:
  static Result<Poller> create();

  /// Returns the descriptors that became readable or were closed within `at_most`.
  /// Errors: TimedOut after a signal; `interrupted` is true from then on.
  Result<std::vector<int>> wait(std::span<const int> descriptors, Duration at_most) const;

  bool interrupted() const { return interrupted_; }

 private:
  explicit Poller(UniqueFd signals) : signals_(std::move(signals)) {}
  UniqueFd signals_;
  mutable bool interrupted_ = false;
};

}  // namespace leasehold::runner
