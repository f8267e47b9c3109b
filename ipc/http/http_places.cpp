#include "ipc/http/http_places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace leasehold::http {

Places::Admission Places::connected(ConnectionId id, const Source& source) {
  const Admission admission = take_place(source);
  if (admission.accepted) places_[id] = {.source = source};
  return admission;
}

Places::Admission Places::note_source(ConnectionId id, const Source& source) {
  const auto found = places_.find(id);
  if (found == places_.end()) return {};
  Place& place = found->second;
  if (place.tenant || place.source == source) {
    place.source = source;
    return {.accepted = true};
  }
  give_back(place);  // frees a place before taking one
  place.source = source;
  return take_place(source);
}

Places::Admission Places::take_place(const Source& source) {
  Admission admission{.accepted = true};
  if (!unauthenticated_.may_take_more(source)) {
    const auto oldest = std::ranges::find_if(places_, [&](const auto& entry) {
      return !entry.second.tenant && entry.second.source == source;
    });
    if (oldest == places_.end()) return {};
    admission.displaced = oldest->first;
    closed(oldest->first);
  }
  unauthenticated_.take(source);
  return admission;
}

Result<void> Places::authenticated(ConnectionId id, const TenantId& tenant) {
  const auto found = places_.find(id);
  if (found == places_.end())
    return fail(Errc::QueueFull, "a newer connection of this source took the place; connect again");
  Place& place = found->second;
  // The rate limit is for guessed keys, so a valid key gets its charge back. The source may have
  // been forgotten meanwhile.
  const auto bucket = checks_.find(place.source);
  if (std::exchange(place.was_charged, false) && bucket != checks_.end())
    bucket->second.give_back(1);
  if (place.tenant == tenant) return {};
  if (!tenants_.may_take_more(tenant)) {
    return fail(Errc::QueueFull, fmt::format("tenant {} has its share of {} connections; close one",
                                             tenant.value, tenants_.held_by(tenant)));
  }
  give_back(place);
  tenants_.take(tenant);
  place.tenant = tenant;
  return {};
}

void Places::give_back(const Place& place) {
  if (place.tenant) tenants_.give_back(*place.tenant);
  if (!place.tenant) unauthenticated_.give_back(place.source);
}

Result<void> Places::take_body(ConnectionId id, std::size_t bytes) {
  const auto found = places_.find(id);
  if (found == places_.end() || !found->second.tenant)
    return fail(Errc::QueueFull, "the connection has lost its place; connect again");
  const TenantId& tenant = *found->second.tenant;
  const std::size_t held = bodies_.held_by(tenant);
  // The rule of may_take_more, applied to the shares after the charge.
  if (held + 2 * bytes > bodies_.capacity() - bodies_.taken()) {
    return fail(
        Errc::QueueFull,
        fmt::format("requests in progress of tenant {} have {} bytes of bodies, its share; retry "
                    "when one has ended",
                    tenant.value, held));
  }
  if (bytes > 0) bodies_.take(tenant, bytes);
  found->second.body_bytes += bytes;
  return {};
}

void Places::release_bodies(ConnectionId id) {
  const auto found = places_.find(id);
  if (found == places_.end() || found->second.body_bytes == 0) return;
  bodies_.give_back(*found->second.tenant, std::exchange(found->second.body_bytes, 0));
}

void Places::closed(ConnectionId id) {
  const auto found = places_.find(id);
  if (found == places_.end()) return;
  release_bodies(id);
  give_back(found->second);
  places_.erase(found);
}

Duration Places::pace_key(ConnectionId id, TimePoint now) {
  const auto found = places_.find(id);
  if (found == places_.end()) return Duration::zero();
  if (checks_.size() >= limits_.max_sources && !checks_.contains(found->second.source))
    checks_.clear();  // bounds the memory, and gives each source at most one burst more
  auto& bucket = checks_.try_emplace(found->second.source, limits_.key_checks, now).first->second;
  if (bucket.take(1, now) == 0) return bucket.wait_for(1, now);
  found->second.was_charged = true;
  return Duration::zero();
}

}  // namespace leasehold::http
