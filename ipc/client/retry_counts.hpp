/// Counts the failures of a session since its stream last made progress. Pure: time is an argument.
#pragma once

#include <cstdint>

#include "ipc/client/retry_decision.hpp"

namespace leasehold::client {

/// A token resets `failures`: a session gives up only when no token arrives. Only progress resets
/// `setbacks`, so a lease revoked after every token still backs off. Threads: one.
class RetryCounts {
 public:
  explicit RetryCounts(const RetryPolicy& policy) : policy_(policy) {}

  /// A refusal that says when to retry is not a failure: a session that obeys does not give up.
  void note_failure(const Error& error) {
    if (error.retry_after_ms == 0) ++failures_;
    ++setbacks_;
  }
  /// The worker accepted the request.
  void note_accepted(TimePoint now) {
    accepted_at_ = now;
    tokens_ = 0;
  }
  void note_token(TimePoint now) {
    failures_ = 0;
    ++tokens_;
    const bool progress =
        tokens_ >= policy_.progress_tokens || now - accepted_at_ >= policy_.progress_time;
    if (progress) setbacks_ = 0;
  }

  int failures() const { return failures_; }
  int setbacks() const { return setbacks_; }

 private:
  RetryPolicy policy_;
  int failures_ = 0;  ///< In a row, without a token.
  int setbacks_ = 0;  ///< In a row, without progress.
  std::uint32_t tokens_ = 0;
  TimePoint accepted_at_;
};

}  // namespace leasehold::client
