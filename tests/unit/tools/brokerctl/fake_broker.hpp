/// A broker made of prepared answers, and what was asked of it.
#pragma once

#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tools/brokerctl/run.hpp"

namespace leasehold::brokerctl {

struct FakeBroker {
  /// The last answer of a method is given again and again.
  std::map<std::string, std::deque<Result<wire::Json>>> answers;
  std::vector<std::pair<std::string, wire::Json>> asked;
  std::vector<Duration> waits;
  int waits_left = 1000;  ///< Then the user asks to stop.
  ManualClock clock;
  std::ostringstream out;

  Dependencies dependencies() {
    return {
        .call = [this](std::string_view method,
                       const wire::Json& params) { return answer(std::string(method), params); },
        .wait =
            [this](Duration duration) {
              waits.push_back(duration);
              clock.advance(duration);
              return waits_left-- > 0;
            },
        .clock = &clock,
        .out = &out};
  }

 private:
  Result<wire::Json> answer(const std::string& method, const wire::Json& params) {
    asked.emplace_back(method, params);
    auto& prepared = answers[method];
    if (prepared.empty()) return fail(Errc::UnknownMethod, method);
    auto result = prepared.front();
    if (prepared.size() > 1) prepared.pop_front();
    return result;
  }
};

inline wire::LeaseView lease_view(LeaseId lease, LeaseState state, std::string tenant = "A") {
  return {.lease = lease,
          .tenant = std::move(tenant),
          .worker = "w",
          .state = state,
          .reason = state == LeaseState::Live ? RevokeReason::None : RevokeReason::Operator,
          .proof = state == LeaseState::Fenced ? "LaunchQuiet" : ""};
}

inline wire::Json items(const std::vector<wire::LeaseView>& leases) {
  wire::Json list = wire::Json::array();
  for (const auto& lease : leases) list.push_back(lease.to_json());
  return {{"items", list}};
}

}  // namespace leasehold::brokerctl
