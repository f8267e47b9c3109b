#include "tools/checks/demo/observation.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/expects.hpp"

namespace leasehold::demo {

const Story& Observation::story(const std::string& name) const {
  const auto found = std::ranges::find_if(
      stories, [&](const Story& candidate) { return candidate.actor.name == name; });
  expects(found != stories.end(), "the cast has this name");
  return *found;
}

const wire::LeaseView* Observation::lease(LeaseId id) const {
  const auto found = std::ranges::find(leases, id, &wire::LeaseView::lease);
  return found == leases.end() ? nullptr : &*found;
}

}  // namespace leasehold::demo
