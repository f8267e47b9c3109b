#include "tests/checks/demo/observation.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/expects.hpp"

namespace leasehold::demo {

const TenantResult& Observation::result(const std::string& name) const {
  const auto found = std::ranges::find_if(
      results, [&](const TenantResult& candidate) { return candidate.spec.name == name; });
  expects(found != results.end(), "the scenario has this name");
  return *found;
}

const wire::LeaseView* Observation::lease(LeaseId id) const {
  const auto found = std::ranges::find(leases, id, &wire::LeaseView::lease);
  return found == leases.end() ? nullptr : &*found;
}

}  // namespace leasehold::demo
