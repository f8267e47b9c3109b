#include "worker/http/keys/key_lease_table.hpp"

#include <algorithm>

#include "common/expects.hpp"

namespace leasehold::http {

Error as_local_error(const Error& error) {
  if (error.code != Errc::UnknownWorker) return error;
  return {Errc::BrokerLost, error.detail + "; this worker attaches again, retry"};
}

TimePoint KeyLeaseTable::Lease::kept_until() const {
  TimePoint last{};
  for (const auto& [request, until] : kept) last = std::max(last, until);
  return last;
}

TimePoint KeyLeaseTable::Lease::due() const {
  return is_closed ? kept_until() : std::max(*idle_until, kept_until());
}

KeyLeaseTable::Joined KeyLeaseTable::join(const ApiKeyId& key, const TenantId& tenant,
                                          TimePoint now) {
  std::erase_if(refusals_, [now](const auto& each) { return each.second.until <= now; });
  if (const auto current = current_.find(key); current != current_.end()) {
    Lease& lease = leases_.at(current->second);
    ++lease.requests;
    lease.idle_until.reset();
    if (lease.is_granted) return Use{current->second};
    return Wait{current->second};
  }
  if (const auto refusal = refusals_.find(key); refusal != refusals_.end())
    return refusal->second.error;
  leases_.emplace(++last_, Lease{.key = key, .tenant = tenant, .requests = 1});
  current_.emplace(key, last_);
  return Acquire{last_};
}

void KeyLeaseTable::granted(Number lease) {
  leases_.at(lease).is_granted = true;
}

void KeyLeaseTable::refused(Number lease, const Error& error, TimePoint now) {
  const auto found = leases_.find(lease);
  expects(found != leases_.end(), "a lease is refused once");
  const ApiKeyId key = found->second.key;
  forget_current(found->second, lease);
  leases_.erase(found);
  if (is_retryable(error.code)) refusals_.insert_or_assign(key, Refusal{error, now + kRefusalTime});
}

void KeyLeaseTable::close(Number lease) {
  const auto found = leases_.find(lease);
  if (found == leases_.end() || !found->second.is_granted) return;
  found->second.is_closed = true;
  forget_current(found->second, lease);
}

void KeyLeaseTable::ended(Number lease) {
  const auto found = leases_.find(lease);
  if (found == leases_.end()) return;
  found->second.has_ended = true;
  found->second.kept.clear();
  close(lease);
}

void KeyLeaseTable::reopen(Number lease) {
  Lease& closed = leases_.at(lease);
  closed.is_closed = closed.has_ended = false;
  const bool is_current = current_.emplace(closed.key, lease).first->second == lease;
  expects(is_current, "a key has one open lease");
}

void KeyLeaseTable::left(Number lease) {
  const auto found = leases_.find(lease);
  if (found == leases_.end()) return;  // the lease was refused
  expects(found->second.requests > 0, "a request leaves a lease once");
  --found->second.requests;
}

void KeyLeaseTable::keep(Number lease, const RequestId& request, TimePoint until) {
  const auto found = leases_.find(lease);
  if (found == leases_.end() || found->second.has_ended) return;
  found->second.kept.insert_or_assign(request, until);
}

void KeyLeaseTable::finished(const TenantId& tenant, const RequestId& request) {
  for (auto& [number, lease] : leases_)
    if (lease.tenant == tenant) lease.kept.erase(request);
}

bool KeyLeaseTable::is_kept(Number lease, TimePoint now) const {
  const auto found = leases_.find(lease);
  return found != leases_.end() && found->second.kept_until() > now;
}

std::optional<KeyLeaseTable::Number> KeyLeaseTable::lease_of(const ApiKeyId& key) const {
  const auto current = current_.find(key);
  if (current == current_.end()) return std::nullopt;
  return current->second;
}

std::vector<KeyLeaseTable::Number> KeyLeaseTable::take_unused(TimePoint now) {
  for (auto& [number, lease] : leases_) {
    std::erase_if(lease.kept, [now](const auto& each) { return each.second <= now; });
    if (lease.requests == 0 && !lease.idle_until) lease.idle_until = now + idle_ttl_;
  }
  return take_if([now](const Lease& lease) {
    return lease.is_granted && lease.requests == 0 && lease.due() <= now;
  });
}

std::vector<KeyLeaseTable::Number> KeyLeaseTable::take_idle_for(Number refused, const Error& error,
                                                                TimePoint now) {
  const bool is_quota = error.code == Errc::QuotaBlocks;
  if (!is_quota && error.code != Errc::PoolExhausted) return {};
  const TenantId tenant = leases_.at(refused).tenant;
  return take_if([&](const Lease& lease) {
    const bool is_idle = lease.is_granted && lease.requests == 0 && lease.kept_until() <= now;
    return is_idle && (!is_quota || lease.tenant == tenant);
  });
}

std::optional<TimePoint> KeyLeaseTable::next_expiry() const {
  std::optional<TimePoint> next;
  for (const auto& [number, lease] : leases_) {
    if (!lease.is_granted || !lease.idle_until) continue;
    next = std::min(next.value_or(lease.due()), lease.due());
  }
  return next;
}

std::vector<KeyLeaseTable::Number> KeyLeaseTable::take_if(const auto& is_taken) {
  std::vector<Number> taken;
  for (const auto& [number, lease] : leases_)
    if (is_taken(lease)) taken.push_back(number);
  for (const Number number : taken) {
    forget_current(leases_.at(number), number);
    leases_.erase(number);
  }
  return taken;
}

void KeyLeaseTable::forget_current(const Lease& lease, Number number) {
  const auto current = current_.find(lease.key);
  if (current != current_.end() && current->second == number) current_.erase(current);
}

}  // namespace leasehold::http
