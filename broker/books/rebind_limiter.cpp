#include "broker/books/rebind_limiter.hpp"

#include <algorithm>

namespace leasehold {
namespace {

/// More than the rounding of the bucket, so that a token is there after the returned time.
constexpr Duration kRounding = std::chrono::nanoseconds(1);

}  // namespace

void RebindLimiter::note_revoked(LeaseId lease, RevokeReason reason, TimePoint now) {
  if (reason == RevokeReason::Released || reason == RevokeReason::HolderGone) return;
  forget_old(now);
  if (revocations_.size() == kMaxRevocations) revocations_.pop_front();
  revocations_.emplace_back(lease, now);
}

Duration RebindLimiter::take(const std::optional<LeaseId>& replaces, TimePoint now) {
  forget_old(now);
  if (!replaces && revocations_.empty()) return Duration::zero();
  if (bucket_.take(1, now) == 0) return bucket_.wait_for(1, now) + kRounding;
  const auto named = std::ranges::find_if(
      revocations_, [&](const auto& revocation) { return revocation.first == replaces; });
  if (named != revocations_.end()) {
    revocations_.erase(named);
  } else if (!replaces) {
    revocations_.pop_front();
  }
  return Duration::zero();
}

void RebindLimiter::forget_old(TimePoint now) {
  while (!revocations_.empty() && revocations_.front().second + kWindow < now) {
    revocations_.pop_front();
  }
}

}  // namespace leasehold
