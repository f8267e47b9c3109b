#include "worker/lease/growth_calls.hpp"

namespace leasehold {
namespace {

constexpr TimePoint kNever{INT64_MAX};

}  // namespace

bool is_growth_refused(Errc code) {
  return code == Errc::PoolExhausted || code == Errc::QuotaBlocks || code == Errc::OutOfMemory ||
         code == Errc::BadRequest || is_lease_ended(code);
}

bool GrowthCalls::begin(LeaseId lease, TimePoint now, Pool pool) {
  const auto [entry, first] = next_call_.try_emplace({lease, pool}, kNever);
  if (first) return true;
  if (now < entry->second) return false;
  entry->second = kNever;
  return true;
}

bool GrowthCalls::end(LeaseId lease, const Result<void>& reply, TimePoint now, Pool pool) {
  const auto entry = next_call_.find({lease, pool});
  if (entry == next_call_.end()) return false;
  if (reply) {
    next_call_.erase(entry);
    return false;
  }
  entry->second = now + kGrowthRetryDelay;
  const bool reclaims = reply.error().retry_after_ms > 0;
  return pool == Pool::Swap || (is_growth_refused(reply.error().code) && !reclaims);
}

void GrowthCalls::forget(LeaseId lease) {
  for (const Pool pool : {Pool::Kv, Pool::Swap}) next_call_.erase({lease, pool});
}

}  // namespace leasehold
