#include "tools/monitor/history.hpp"

#include <nlohmann/json.hpp>

namespace leasehold::monitor {

using control::Json;

void History::add(const BrokerState& state, TimePoint at) {
  Sample sample{.at = at,
                .live = state.status.leases_live,
                .revoked = state.status.leases_revoked,
                .stuck = state.status.leases_stuck,
                .tokens = {}};
  for (const wire::TenantServed& each : state.served)
    sample.tokens[each.tenant.value] = each.tokens;
  if (samples_.size() == kMaxSamples) samples_.pop_front();
  samples_.push_back(std::move(sample));
}

Json History::to_json() const {
  Json at = Json::array();
  Json live = Json::array();
  Json revoked = Json::array();
  Json stuck = Json::array();
  Json tokens = Json::object();
  if (!samples_.empty())
    for (const auto& [tenant, count] : samples_.back().tokens) tokens[tenant] = Json::array();
  for (const Sample& sample : samples_) {
    at.push_back(sample.at.boottime_ns);
    live.push_back(sample.live);
    revoked.push_back(sample.revoked);
    stuck.push_back(sample.stuck);
    for (auto& [tenant, column] : tokens.items()) {
      const auto counted = sample.tokens.find(tenant);
      column.push_back(counted == sample.tokens.end() ? Json() : Json(counted->second));
    }
  }
  return {{"at_boottime_ns", std::move(at)},
          {"live", std::move(live)},
          {"revoked", std::move(revoked)},
          {"stuck", std::move(stuck)},
          {"tokens", std::move(tokens)}};
}

}  // namespace leasehold::monitor
