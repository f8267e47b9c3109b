#include <fmt/format.h>

#include "tools/checks/soak/judge_checks.hpp"

namespace leasehold::soak {
namespace {

constexpr TimePoint kLastMoment{INT64_MAX};

demo::Check one_way(const Case& all) {
  Finding finding("every lease went Live → Revoked → Fenced and never back, fenced by proof",
                  "leases");
  for (const LeaseStories& life : all.lives) {
    finding.looked(life.leases.size());
    for (const std::string& wrong : life.wrong) finding.wrong(wrong);
  }
  return finding.check();
}

/// A broker that was killed leaves leases as they were; engine leases outlive a round. A fence at
/// the very moment of a death may not have been told; that its memory is free is another promise.
demo::Check all_fenced(const Case& all) {
  Finding finding("every lease of a tenant was fenced in the end", "leases");
  for (std::size_t i = 0; i < all.lives.size(); ++i) {
    const BrokerLife& broker = all.history.brokers[i];
    if (broker.ended_early) continue;
    for (const auto& [id, story] : all.lives[i].leases) {
      if (story.tenant.empty()) continue;
      finding.looked();
      const bool untold = story.revoked && broker.restarted_between(*story.revoked, kLastMoment);
      if (!story.fenced && !untold) finding.wrong(fmt::format("lease {} was not", to_string(id)));
    }
  }
  return finding.check();
}

/// Steps are stamped before their commit reads the words, so a stamp after the fence is a row that
/// ran on memory which was given back.
void judge_step(const events::BatchedDecodeStep& step, TimePoint at, const LeaseStories& life,
                Finding& finding) {
  for (const LeaseId id : step.per_seq_leases) {
    finding.looked();
    const auto found = life.leases.find(id);
    if (found == life.leases.end()) {
      finding.wrong(
          fmt::format("step {} under lease {}, which was never granted", step.step, to_string(id)));
    } else if (found->second.fenced && *found->second.fenced < at) {
      finding.wrong(fmt::format("step {} under lease {}, {} ns after its fence", step.step,
                                to_string(id), (at - *found->second.fenced).count()));
    }
  }
}

demo::Check no_unit_after_fence(const Case& all) {
  Finding finding("no row of a step was committed under a lease that was fenced", "rows");
  for (const WorkerLife& worker : all.history.workers) {
    for (const events::StampedEvent& stamped : worker.steps) {
      const auto* step = std::get_if<events::BatchedDecodeStep>(&stamped.event);
      if (step != nullptr) judge_step(*step, stamped.at, all.lives.at(worker.broker), finding);
    }
  }
  return finding.check();
}

/// A worker that refuses says so of leases that were taken back, and not before they were; but it
/// knows their deadlines as well as the broker does.
bool has_cause(const LeaseStory& story, TimePoint refused_at) {
  if (!story.revoked) return false;
  return *story.revoked <= refused_at || story.reason == RevokeReason::TtlExpired;
}

demo::Check refusals_have_cause(const Case& all) {
  Finding finding("no launch was refused without its lease having been taken back", "refusals");
  for (std::size_t i = 0; i < all.lives.size(); ++i) {
    for (const events::StampedEvent& stamped : all.history.brokers[i].events) {
      const auto* refused = std::get_if<events::ForwardRevoked>(&stamped.event);
      if (refused == nullptr) continue;
      finding.looked();
      const auto found = all.lives[i].leases.find(refused->lease);
      const bool caused =
          found != all.lives[i].leases.end() && has_cause(found->second, stamped.at);
      if (!caused) finding.wrong("lease " + to_string(refused->lease));
    }
  }
  return finding.check(0);
}

}  // namespace

void judge_leases(const Case& all, std::vector<demo::Check>& checks) {
  checks.push_back(one_way(all));
  checks.push_back(all_fenced(all));
  checks.push_back(no_unit_after_fence(all));
  checks.push_back(refusals_have_cause(all));
}

}  // namespace leasehold::soak
