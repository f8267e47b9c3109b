#include "tests/checks/runner/judge_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace leasehold::runner {
namespace {

constexpr std::array<std::string_view, 5> kProofs{"LaunchQuiet", "WorkerAck", "ProcessExit",
                                                  "NeverMapped", "MachineRestart"};

/// Describes a wrong transition; empty when it is right. `after_death`: the broker died since the
/// previous event. Events may then be missing or repeated, but a state never goes back.
std::string take(LeaseTrace& trace, const events::LeaseStateChanged& event, TimePoint at,
                 bool after_death) {
  switch (event.state) {
    case LeaseState::Closed:
      return "was reported as Closed, which no event may do";
    case LeaseState::Live:
      if (trace.revoked || trace.fenced) return "was granted after its end";
      if (trace.granted && !after_death) return "was granted twice";
      trace.granted = trace.granted.value_or(at);
      trace.tenant = event.tenant;
      return {};
    case LeaseState::Revoked:
      if (trace.fenced) return "was revoked after its fence";
      if (!after_death && (!trace.granted || trace.revoked)) {
        return "was revoked without being Live";
      }
      trace.revoked = trace.revoked.value_or(at);
      trace.reason = event.reason;
      return event.reason == RevokeReason::None ? "was revoked for no reason" : "";
    case LeaseState::Fenced:
      if (!after_death && (!trace.revoked || trace.fenced)) {
        return "was fenced without being Revoked";
      }
      trace.fenced = trace.fenced.value_or(at);
      return std::ranges::find(kProofs, event.proof) == kProofs.end() ? "was fenced without proof"
                                                                      : "";
  }
  return "has an unknown state";
}

TimePoint last_transition(const LeaseTrace& trace) {
  return std::max({trace.granted.value_or(TimePoint{}), trace.revoked.value_or(TimePoint{}),
                   trace.fenced.value_or(TimePoint{})});
}

LeaseTraces lease_traces(const BrokerInstance& instance) {
  LeaseTraces traces;
  for_each_event<events::LeaseStateChanged>(instance.events, [&](const auto& event, TimePoint at) {
    LeaseTrace& trace = traces.leases[event.lease];
    const bool after_death = instance.restarted_between(last_transition(trace), at);
    const std::string wrong = take(trace, event, at, after_death);
    if (!wrong.empty())
      traces.wrong.push_back(fmt::format("lease {} {}", to_string(event.lease), wrong));
  });
  return traces;
}

}  // namespace

bool BrokerInstance::restarted_between(TimePoint from, TimePoint to) const {
  return std::ranges::any_of(restarts, [&](TimePoint at) { return from <= at && at <= to; });
}

std::optional<std::size_t> Case::instance_of(LeaseId lease, const std::string& tenant,
                                             TimePoint acquired_at) const {
  for (std::size_t i = instances.size(); i-- > 0;) {
    const auto found = instances[i].leases.find(lease);
    if (found == instances[i].leases.end()) continue;
    const LeaseTrace& trace = found->second;
    if (trace.tenant == tenant && trace.granted && *trace.granted <= acquired_at) return i;
  }
  return std::nullopt;
}

std::vector<Check> judge(const Record& record) {
  Case all{.record = record, .instances = {}};
  for (const BrokerInstance& broker : record.brokers) all.instances.push_back(lease_traces(broker));
  std::vector<Check> checks;
  judge_leases(all, checks);
  judge_holders(all, checks);
  judge_sharing(all, checks);
  judge_memory(all, checks);
  return checks;
}

}  // namespace leasehold::runner
