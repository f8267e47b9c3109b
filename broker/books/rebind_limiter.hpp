/// Limits how often one tenant replaces leases that were revoked.
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

/// The token that a rebind took. `revocation` is the remembered revocation that made the acquire a
/// rebind.
struct RebindToken {
  struct Revocation {
    LeaseId lease;
    TimePoint at;
  };
  std::optional<Revocation> revocation;
};

class RebindLimiter {
 public:
  /// An acquire later than this after the last revocation is new work.
  static constexpr Duration kWindow = std::chrono::minutes(1);
  /// If the window has more revocations than this, only the newest are remembered.
  static constexpr std::size_t kMaxRevocations = 4096;

  RebindLimiter(Rate rate, TimePoint now) : bucket_(rate, now) {}

  /// Keeps the tokens that are left, up to the new burst.
  void set_rate(Rate rate, TimePoint now) { bucket_.set_rate(rate, now); }

  /// Does nothing when the holder ended the lease itself.
  void note_revoked(LeaseId lease, RevokeReason reason, TimePoint now);

  /// Takes a token for a rebind; returns nothing for an acquire that is new work. Without a token,
  /// returns the time until one is available, and changes nothing.
  std::expected<std::optional<RebindToken>, Duration> take(const std::optional<LeaseId>& replaces,
                                                           TimePoint now);
  /// True while an acquire that follows a revocation would be a rebind.
  bool may_rebind(TimePoint now) const {
    return !revocations_.empty() && revocations_.back().at + kWindow >= now;
  }
  /// Undoes a take: the next acquire that follows the revocation is a rebind again.
  void give_back(const RebindToken& token);

 private:
  void forget_old(TimePoint now);

  TokenBucket bucket_;
  /// Revocations without a rebind yet, oldest first.
  std::deque<RebindToken::Revocation> revocations_;
};

}  // namespace leasehold
