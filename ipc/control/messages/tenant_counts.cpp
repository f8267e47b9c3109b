#include "ipc/control/messages/tenant_counts.hpp"

#include <algorithm>

namespace leasehold {

void TenantCounts::add(const wire::TenantServed& served, TimePoint now) {
  decay(now);
  const auto place = places_.find(served.tenant);
  if (place != places_.end()) {
    place->second.served.add(served);
    place->second.recent += static_cast<double>(served.tokens);
    return;
  }
  if (outsiders_.size() >= kMaxOutsiders) outsiders_.clear();
  double& recent = outsiders_[served.tenant];
  recent += static_cast<double>(served.tokens);
  if (!take_place(served, recent)) others_.add(served);
}

bool TenantCounts::take_place(const wire::TenantServed& served, double recent) {
  if (served.tenant.value == kOther) return false;
  if (places_.size() >= max_places_) {
    const auto least = std::ranges::min_element(
        places_, {}, [](const auto& entry) { return entry.second.recent; });
    if (least == places_.end() || recent <= kLead * least->second.recent) return false;
    outsiders_[least->first] = least->second.recent;
    places_.erase(least);
  }
  outsiders_.erase(served.tenant);
  places_[served.tenant] = {.served = served, .recent = recent};
  return true;
}

void TenantCounts::decay(TimePoint now) {
  if (now - decayed_at_ < kHalfLife) return;
  decayed_at_ = now;
  for (auto& [tenant, place] : places_) place.recent /= 2;
  for (auto& [tenant, recent] : outsiders_) recent /= 2;
  std::erase_if(outsiders_, [](const auto& entry) { return entry.second < 1; });
}

std::vector<wire::TenantServed> TenantCounts::counts() const {
  std::vector<wire::TenantServed> all;
  for (const auto& [tenant, place] : places_) all.push_back(place.served);
  if (others_.tokens == 0) return all;
  all.push_back(others_);
  all.back().tenant.value = kOther;
  return all;
}

}  // namespace leasehold
