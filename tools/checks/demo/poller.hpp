/// Waiting for descriptors, never for longer than agreed, and never past Ctrl-C.
#pragma once

#include <span>
#include <vector>

#include "common/clock.hpp"
#include "common/unique_fd.hpp"

namespace leasehold::demo {

/// SIGINT and SIGTERM become readable here instead of ending the process, so that everything that
/// was started is taken down again. One per process, made before anything else.
class Poller {
 public:
  static Result<Poller> create();

  /// The descriptors that became readable (or were closed) within `at_most`; none when none did.
  /// Errors: TimedOut after a signal; `interrupted` is true from then on.
  Result<std::vector<int>> wait(std::span<const int> descriptors, Duration at_most) const;

  bool interrupted() const { return interrupted_; }

 private:
  explicit Poller(UniqueFd signals) : signals_(std::move(signals)) {}
  UniqueFd signals_;
  mutable bool interrupted_ = false;
};

}  // namespace leasehold::demo
