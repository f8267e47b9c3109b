/// A broker with prepared replies that records the calls.
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
  /// Replies by method, in order; the last one repeats.
  std::map<std::string, std::deque<Result<wire::Json>>> replies;
  std::vector<std::pair<std::string, wire::Json>> calls;
  std::vector<Duration> waits;
  int waits_left = 1000;  ///< Then the user interrupts.
  ManualClock clock;
  std::ostringstream out;
  std::vector<std::pair<std::size_t, std::size_t>> progress;

  Dependencies dependencies() {
    return {.call = [this](std::string_view method,
                           const wire::Json& params) { return reply(std::string(method), params); },
            .wait =
                [this](Duration duration) {
                  waits.push_back(duration);
                  clock.advance(duration);
                  return waits_left-- > 0;
                },
            .clock = &clock,
            .out = &out,
            .progress = [this](std::size_t ended,
                               std::size_t all) { progress.emplace_back(ended, all); }};
  }

 private:
  Result<wire::Json> reply(const std::string& method, const wire::Json& params) {
    calls.emplace_back(method, params);
    auto& prepared = replies[method];
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

template <class View = wire::LeaseView>
wire::Json items(const std::vector<View>& views) {
  wire::Json list = wire::Json::array();
  for (const View& view : views) list.push_back(view.to_json());
  return {{"items", list}};
}

/// Runs a correct command line. `broker.out` has its output only.
inline Result<void> run_words(FakeBroker& broker, const std::vector<std::string>& words) {
  broker.out.str("");
  return run(parse_arguments(words).value(), broker.dependencies());
}

}  // namespace leasehold::brokerctl
