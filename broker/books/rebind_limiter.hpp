/// Bounds how often one tenant replaces leases that were revoked.
///
/// A rebind is an acquire that names the lease it replaces, or that follows the revocation of one
/// of the tenant's leases within kWindow. Each revocation makes one such acquire a rebind, so a
/// client that does not name its old lease meets the same limit. Pure. Threads: one.
#pragma once

#include <deque>
#include <expected>
#include <optional>

#include "common/ids.hpp"
#include "common/token_bucket.hpp"
#include "ipc/segment/lease_word.hpp"

namespace leasehold {

/// What one rebind took. `follows` is the remembered revocation that made its acquire a rebind.
struct RebindToken {
  struct Revocation {
    LeaseId lease;
    TimePoint at;
  };
  std::optional<Revocation> follows;
};

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

  /// The token of a rebind; nothing for an acquire that is new work. An error is the time until a
  /// token is there; nothing has changed then.
  std::expected<std::optional<RebindToken>, Duration> take(const std::optional<LeaseId>& replaces,
                                                           TimePoint now);
  /// True while an acquire that follows a revocation would be a rebind.
  bool is_awaited(TimePoint now) const {
    return !revocations_.empty() && revocations_.back().at + kWindow >= now;
  }
  /// Undoes a take: the next acquire that follows the revocation is a rebind again.
  void give_back(const RebindToken& token);

 private:
  void forget_old(TimePoint now);

  TokenBucket bucket_;
  std::deque<RebindToken::Revocation> revocations_;  ///< Not replaced yet, oldest first.
};

}  // namespace leasehold
