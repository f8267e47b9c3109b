#include "worker/serve/connection_limiter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace leasehold {

std::optional<ConnectionLimiter::ConnectionId> ConnectionLimiter::connected(ConnectionId id,
                                                                            uid_t uid,
                                                                            TimePoint now) {
  std::optional<ConnectionId> displaced;
  if (!unauthenticated_.may_take_more(uid)) displaced = displace_for(uid);
  unauthenticated_.take(uid);
  const auto unauthenticated =
      unauthenticated_by_id_
          .emplace(id,
                   Unauthenticated{.uid = uid, .deadline = now + limits_.authentication_timeout})
          .first;
  (void)charge_unauthenticated(unauthenticated->second, 1, now);
  return displaced;
}

/// Chooses the oldest unauthenticated connection of the same uid. If the uid has none, which
/// happens only when more uids than places have unauthenticated connections, chooses the oldest of
/// all.
std::optional<ConnectionLimiter::ConnectionId> ConnectionLimiter::displace_for(uid_t uid) {
  auto oldest = std::ranges::find_if(unauthenticated_by_id_,
                                     [uid](const auto& entry) { return entry.second.uid == uid; });
  if (oldest == unauthenticated_by_id_.end()) oldest = unauthenticated_by_id_.begin();
  if (oldest == unauthenticated_by_id_.end()) return std::nullopt;
  const ConnectionId id = oldest->first;
  forget_unauthenticated(oldest);
  ++report_.displaced;
  return id;
}

void ConnectionLimiter::forget_unauthenticated(
    UnauthenticatedConnections::iterator unauthenticated) {
  unauthenticated_.give_back(unauthenticated->second.uid);
  unauthenticated_by_id_.erase(unauthenticated);
}

Result<std::optional<ConnectionLimiter::ConnectionId>> ConnectionLimiter::authenticated(
    ConnectionId id, const LeaseClaim& claim, TimePoint now, const UseOf& use_of) {
  const TenantId& tenant = claim.tenant;
  if (const TenantId* owner = tenant_of(id)) {
    if (*owner != tenant) {
      return fail(Errc::BadToken, fmt::format("this connection belongs to tenant {}, the token to "
                                              "another; open a connection for each tenant",
                                              owner->value));
    }
    used(id, claim.lease, now);
    return std::nullopt;
  }
  const auto unauthenticated = unauthenticated_by_id_.find(id);
  if (unauthenticated == unauthenticated_by_id_.end()) {
    return fail(Errc::ConnectionLost,
                "this connection gave its place to a newer one before it authenticated; connect "
                "again");
  }
  std::optional<ConnectionId> displaced;
  if (!tenants_.may_take_more(tenant)) {
    displaced = displace_for(tenant, use_of);
    if (!displaced) {
      ++report_.refused;
      return fail(Errc::QueueFull,
                  fmt::format("tenant {} has {} connections to this worker, its share of {}, and "
                              "requests on all; close one, or retry later",
                              tenant.value, tenants_.held_by(tenant), tenants_.capacity()));
    }
  }
  charge_tenant_instead(unauthenticated->second, tenant, now);
  forget_unauthenticated(unauthenticated);
  tenants_.take(tenant);
  place_by_id_.emplace(
      id, TenantPlace{
              .tenant = tenant, .lease = claim.lease, .used_at = now, .ended_at = std::nullopt});
  return displaced;
}

std::optional<ConnectionLimiter::ConnectionId> ConnectionLimiter::displace_for(
    const TenantId& tenant, const UseOf& use_of) {
  auto chosen = place_by_id_.end();
  bool chosen_is_live = true;
  for (auto place = place_by_id_.begin(); place != place_by_id_.end(); ++place) {
    if (place->second.tenant != tenant) continue;
    const Use use = use_of(place->first, place->second.lease);
    if (use.has_requests) continue;
    const auto rank = std::pair(use.lease_is_live, place->second.used_at);
    if (chosen != place_by_id_.end() && rank >= std::pair(chosen_is_live, chosen->second.used_at))
      continue;
    chosen = place;
    chosen_is_live = use.lease_is_live;
  }
  if (chosen == place_by_id_.end()) return std::nullopt;
  const ConnectionId id = chosen->first;
  forget_place(chosen);
  ++report_.unused;
  return id;
}

void ConnectionLimiter::used(ConnectionId id, LeaseId lease, TimePoint now) {
  const auto place = place_by_id_.find(id);
  if (place == place_by_id_.end()) return;
  place->second.lease = lease;
  place->second.used_at = now;
}

const TenantId* ConnectionLimiter::tenant_of(ConnectionId id) const {
  const auto found = place_by_id_.find(id);
  return found == place_by_id_.end() ? nullptr : &found->second.tenant;
}

LeaseId ConnectionLimiter::lease_of(ConnectionId id) const {
  const auto found = place_by_id_.find(id);
  return found == place_by_id_.end() ? LeaseId{} : found->second.lease;
}

void ConnectionLimiter::closed(ConnectionId id) {
  const auto unauthenticated = unauthenticated_by_id_.find(id);
  if (unauthenticated != unauthenticated_by_id_.end()) forget_unauthenticated(unauthenticated);
  const auto place = place_by_id_.find(id);
  if (place != place_by_id_.end()) forget_place(place);
}

void ConnectionLimiter::forget_place(TenantPlaces::iterator place) {
  tenants_.give_back(place->second.tenant);
  place_by_id_.erase(place);
}

template <class Owner>
TokenBucket& ConnectionLimiter::bucket(std::map<Owner, TokenBucket>& buckets, const Owner& owner,
                                       const Rate& rate, TimePoint now) {
  return buckets.try_emplace(owner, rate, now).first->second;
}

Duration ConnectionLimiter::charge_unauthenticated(Unauthenticated& unauthenticated,
                                                   std::size_t weight, TimePoint now) {
  TokenBucket& budget =
      bucket(uid_buckets_, unauthenticated.uid, limits_.unauthenticated_lines, now);
  const Duration wait = budget.wait(now);
  if (wait >= limits_.max_unauthenticated_wait) return wait;
  unauthenticated.charged += weight;
  return budget.reserve(weight, now);
}

void ConnectionLimiter::charge_tenant_instead(const Unauthenticated& unauthenticated,
                                              const TenantId& tenant, TimePoint now) {
  TokenBucket& budget = bucket(tenant_buckets_, tenant, limits_.tenant_lines, now);
  if (budget.wait(now) > Duration::zero()) return;
  budget.reserve(unauthenticated.charged, now);
  uid_buckets_.at(unauthenticated.uid).give_back(unauthenticated.charged);
}

Duration ConnectionLimiter::pace(ConnectionId id, std::size_t weight, TimePoint now) {
  if (const TenantId* tenant = tenant_of(id))
    return bucket(tenant_buckets_, *tenant, limits_.tenant_lines, now).reserve(weight, now);
  const auto unauthenticated = unauthenticated_by_id_.find(id);
  if (unauthenticated == unauthenticated_by_id_.end())
    return Duration::zero();  // the connection is being closed
  return charge_unauthenticated(unauthenticated->second, weight, now);
}

std::optional<TimePoint> ConnectionLimiter::next_deadline() const {
  if (unauthenticated_by_id_.empty()) return std::nullopt;
  return unauthenticated_by_id_.begin()->second.deadline;
}

std::vector<ConnectionLimiter::ConnectionId> ConnectionLimiter::take_overdue(TimePoint now) {
  std::vector<ConnectionId> overdue;
  while (!unauthenticated_by_id_.empty() &&
         unauthenticated_by_id_.begin()->second.deadline <= now) {
    overdue.push_back(unauthenticated_by_id_.begin()->first);
    forget_unauthenticated(unauthenticated_by_id_.begin());
    ++report_.timed_out;
  }
  return overdue;
}

std::vector<ConnectionLimiter::ConnectionId> ConnectionLimiter::take_ended(TimePoint now,
                                                                           const UseOf& use_of) {
  std::vector<ConnectionId> ended;
  for (auto& [id, place] : place_by_id_) {
    const Use use = use_of(id, place.lease);
    if (use.lease_is_live || use.has_requests)
      place.ended_at.reset();
    else if (!place.ended_at)
      place.ended_at = now;
    if (place.ended_at && now >= *place.ended_at + limits_.ended_lease_timeout) ended.push_back(id);
  }
  for (const ConnectionId id : ended) forget_place(place_by_id_.find(id));
  report_.unused += ended.size();
  return ended;
}

std::optional<ConnectionLimiter::Report> ConnectionLimiter::take_report(TimePoint now) {
  if (report_ == Report{}) return std::nullopt;
  if (reported_at_ && now < *reported_at_ + limits_.log_interval) return std::nullopt;
  reported_at_ = now;
  return std::exchange(report_, {});
}

}  // namespace leasehold
