#include "worker/http/http_places.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace leasehold::http {

Places::Admission Places::connected(ConnectionId id, const Source& source) {
  Admission admission{.accepted = true};
  if (!strangers_.may_take_more(source)) {
    const auto oldest = std::ranges::find_if(places_, [&](const auto& entry) {
      return !entry.second.tenant && entry.second.source == source;
    });
    if (oldest == places_.end()) return {};
    admission.displaced = oldest->first;
    closed(oldest->first);
  }
  strangers_.take(source);
  places_[id] = {.source = source};
  return admission;
}

Result<void> Places::authenticated(ConnectionId id, const TenantId& tenant) {
  const auto found = places_.find(id);
  if (found == places_.end())
    return fail(Errc::QueueFull, "a newer connection of this source took the place; connect again");
  Place& place = found->second;
  if (place.tenant == tenant) return {};
  if (place.tenant)
    return fail(Errc::BadToken, "this connection belongs to another tenant; open another one");
  if (!tenants_.may_take_more(tenant)) {
    return fail(Errc::QueueFull, fmt::format("tenant {} has its share of {} connections; close one",
                                             tenant.value, tenants_.held_by(tenant)));
  }
  strangers_.give_back(place.source);
  tenants_.take(tenant);
  place.tenant = tenant;
  return {};
}

void Places::closed(ConnectionId id) {
  const auto found = places_.find(id);
  if (found == places_.end()) return;
  const Place& place = found->second;
  if (place.tenant) tenants_.give_back(*place.tenant);
  if (!place.tenant) strangers_.give_back(place.source);
  places_.erase(found);
}

Duration Places::pace_key(ConnectionId id, TimePoint now) {
  const auto found = places_.find(id);
  if (found == places_.end()) return Duration::zero();
  if (checks_.size() >= limits_.max_sources && !checks_.contains(found->second.source))
    checks_.clear();  // forgetting is cheaper than growing, and gives each one burst at most
  auto& bucket = checks_.try_emplace(found->second.source, limits_.key_checks, now).first->second;
  return bucket.take(1, now) == 1 ? Duration::zero() : bucket.wait_for(1, now);
}

}  // namespace leasehold::http
