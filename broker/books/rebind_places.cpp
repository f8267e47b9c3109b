#include "broker/books/rebind_places.hpp"

#include <algorithm>

#include "common/expects.hpp"

namespace leasehold {
namespace {

bool is_same(const MemoryDemand& one, const MemoryDemand& other) {
  return one.tenant == other.tenant && one.replaces == other.replaces;
}

}  // namespace

std::vector<RebindPlaces::Place>::iterator RebindPlaces::find(const MemoryDemand& demand) {
  return std::ranges::find_if(places_,
                              [&](const Place& place) { return is_same(place.demand, demand); });
}

bool RebindPlaces::has(const MemoryDemand& demand) const {
  return std::ranges::any_of(places_,
                             [&](const Place& place) { return is_same(place.demand, demand); });
}

bool RebindPlaces::keep(const MemoryDemand& demand, TimePoint now) {
  expects(demand.replaces.has_value(), "only a rebind waits");
  drop_old(now);
  const Place place{demand, now + kPlaceTimeout};
  if (const auto found = find(demand); found != places_.end()) {
    *found = place;
    return true;
  }
  if (!shares_.may_take_more(demand.tenant)) return false;
  shares_.take(demand.tenant);
  places_.push_back(place);
  return true;
}

void RebindPlaces::give_up(const TenantId& tenant, LeaseId replaces) {
  const auto found = find({.tenant = tenant, .replaces = replaces});
  if (found != places_.end()) erase(found);
}

PlacesBefore RebindPlaces::before(const MemoryDemand& demand, TimePoint now) {
  drop_old(now);
  PlacesBefore before;
  for (const Place& place : places_) {
    if (demand.replaces && is_same(place.demand, demand)) break;
    if (place.demand.is_scavenger && !demand.is_scavenger) continue;
    if (by_worker_ && place.demand.worker != demand.worker) continue;
    ++before.count;
    before.extents += place.demand.extents;
  }
  return before;
}

void RebindPlaces::drop_old(TimePoint now) {
  for (auto place = places_.begin(); place != places_.end();) {
    if (place->until > now) {
      ++place;
      continue;
    }
    shares_.give_back(place->demand.tenant);
    place = places_.erase(place);
  }
}

void RebindPlaces::erase(std::vector<Place>::iterator place) {
  shares_.give_back(place->demand.tenant);
  places_.erase(place);
}

}  // namespace leasehold
