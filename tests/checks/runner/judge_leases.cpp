#include <fmt/format.h>

#include "tests/checks/runner/judge_case.hpp"

namespace leasehold::runner {
namespace {

constexpr TimePoint kLastMoment{INT64_MAX};

Check one_way(const Case& all) {
  Finding finding("every lease went Live → Revoked → Fenced, with proof, and never back", "leases");
  for (const LeaseTraces& instance : all.instances) {
    finding.checked(instance.leases.size());
    for (const std::string& wrong : instance.wrong) finding.wrong(wrong);
  }
  return finding.check();
}

/// Skips brokers that were killed for good and engine leases, which outlive a round. A fence during
/// the death of the broker may be missing from the log; another check covers its memory.
Check all_fenced(const Case& all) {
  Finding finding("every lease of a tenant is fenced at the end", "leases");
  for (std::size_t i = 0; i < all.instances.size(); ++i) {
    const BrokerInstance& broker = all.record.brokers[i];
    if (broker.ended_early) continue;
    for (const auto& [id, trace] : all.instances[i].leases) {
      if (trace.tenant.empty()) continue;
      finding.checked();
      const bool unreported =
          trace.revoked && broker.restarted_between(*trace.revoked, kLastMoment);
      if (!trace.fenced && !unreported)
        finding.wrong(fmt::format("lease {} was not", to_string(id)));
    }
  }
  return finding.check();
}

/// The worker stamps a step before its commit reads the lease words, so a stamp after the fence is
/// a row that ran on released memory.
void judge_step(const events::BatchedDecodeStep& step, TimePoint at, const LeaseTraces& instance,
                Finding& finding) {
  for (const LeaseId id : step.per_seq_leases) {
    finding.checked();
    const auto found = instance.leases.find(id);
    if (found == instance.leases.end()) {
      finding.wrong(
          fmt::format("step {} under lease {}, which was never granted", step.step, to_string(id)));
    } else if (found->second.fenced && *found->second.fenced < at) {
      finding.wrong(fmt::format("step {} under lease {}, {} ns after its fence", step.step,
                                to_string(id), (at - *found->second.fenced).count()));
    }
  }
}

Check no_unit_after_fence(const Case& all) {
  Finding finding("no row of a step was committed under a lease that was fenced", "rows");
  for (const WorkerInstance& worker : all.record.workers) {
    for_each_event<events::BatchedDecodeStep>(worker.steps, [&](const auto& step, TimePoint at) {
      judge_step(step, at, all.instances.at(worker.broker), finding);
    });
  }
  return finding.check();
}

/// A worker refuses only after the revocation, except at a lease's deadline, which the worker sees
/// as early as the broker.
bool has_cause(const Case& all, const LeaseTrace& trace, TimePoint refused_at) {
  if (!trace.revoked) return false;
  const auto lifetime = all.record.lifetimes.find(trace.tenant);
  const bool is_over = lifetime != all.record.lifetimes.end() && trace.granted &&
                       refused_at >= *trace.granted + lifetime->second;
  return *trace.revoked <= refused_at || is_over || trace.reason == RevokeReason::TtlExpired;
}

Check refusals_have_cause(const Case& all) {
  Finding finding("no launch was refused under a live lease", "refusals");
  for (std::size_t i = 0; i < all.instances.size(); ++i) {
    const auto& leases = all.instances[i].leases;
    for_each_event<events::ForwardRevoked>(
        all.record.brokers[i].events, [&](const auto& refused, TimePoint at) {
          const auto found = leases.find(refused.lease);
          const bool caused = found != leases.end() && has_cause(all, found->second, at);
          finding.sample(caused ? "" : "lease " + to_string(refused.lease));
        });
  }
  return finding.check(0);
}

}  // namespace

void judge_leases(const Case& all, std::vector<Check>& checks) {
  checks.push_back(one_way(all));
  checks.push_back(all_fenced(all));
  checks.push_back(no_unit_after_fence(all));
  checks.push_back(refusals_have_cause(all));
}

}  // namespace leasehold::runner
