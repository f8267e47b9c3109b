/// Bounds how often one tenant replaces leases that were revoked.
///
/// A rebind is an acquire that names the lease it replaces, or that follows the revocation of one
/// of the tenant's leases within kWindow. Each revocation makes one such acquire a rebind, so a
/// client that does not name its old lease meets the same limit. Pure. Threads: one.
#pragma once

#include <deque>
#include <optional>
#include <utility>

#include "broker/books/token_bucket.hpp"
#include "common/ids.hpp"
#include "ipc/segment/lease_word.hpp"

namespace leasehold {

class RebindLimiter {
 public:
  /// After this time an acquire is new work.
  static constexpr Duration kWindow = std::chrono::minutes(1);
  /// Of the revocations in the window, the newest are remembered.
  static constexpr std::size_t kMaxRevocations = 4096;

  RebindLimiter(Rate rate, TimePoint now) : bucket_(rate, now) {}

  /// Keeps the tokens that are left, up to the new burst.
  void set_rate(Rate rate, TimePoint now) { bucket_.set_rate(rate, now); }

  /// Does nothing when the holder ended the lease itself.
  void note_revoked(LeaseId lease, RevokeReason reason, TimePoint now);

  /// Zero if the acquire is new work, or has taken a token. Otherwise nothing has changed, and the
  /// result is the time until a token is there.
  Duration take(const std::optional<LeaseId>& replaces, TimePoint now);

 private:
  void forget_old(TimePoint now);

  TokenBucket bucket_;
  std::deque<std::pair<LeaseId, TimePoint>> revocations_;  ///< Not replaced yet, oldest first.
};

}  // namespace leasehold
