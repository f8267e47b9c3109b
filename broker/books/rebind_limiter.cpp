#include "broker/books/rebind_limiter.hpp"

#include <algorithm>

namespace leasehold {
namespace {

/// Exceeds the rounding error of the bucket, so that a token is available after the returned time.
constexpr Duration kRounding = std::chrono::nanoseconds(1);

}  // namespace

void RebindLimiter::note_revoked(LeaseId lease, RevokeReason reason, TimePoint now) {
  if (reason == RevokeReason::Released || reason == RevokeReason::HolderGone) return;
  forget_old(now);
  if (revocations_.size() == kMaxRevocations) revocations_.pop_front();
  revocations_.push_back({.lease = lease, .at = now});
}

std::expected<std::optional<RebindToken>, Duration> RebindLimiter::take(
    const std::optional<LeaseId>& replaces, TimePoint now) {
  forget_old(now);
  if (!replaces && revocations_.empty()) return std::nullopt;
  if (bucket_.take(1, now) == 0) return std::unexpected(bucket_.wait_for(1, now) + kRounding);
  const auto followed =
      replaces ? std::ranges::find(revocations_, *replaces, &RebindToken::Revocation::lease)
               : revocations_.begin();
  RebindToken token;
  if (followed == revocations_.end()) return token;
  token.revocation = *followed;
  revocations_.erase(followed);
  return token;
}

void RebindLimiter::give_back(const RebindToken& token) {
  bucket_.give_back(1);
  if (!token.revocation || revocations_.size() == kMaxRevocations) return;
  revocations_.insert(std::ranges::upper_bound(revocations_, token.revocation->at, {},
                                               &RebindToken::Revocation::at),
                      *token.revocation);
}

void RebindLimiter::forget_old(TimePoint now) {
  while (!revocations_.empty() && revocations_.front().at + kWindow < now) {
    revocations_.pop_front();
  }
}

}  // namespace leasehold
