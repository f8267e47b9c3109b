#include "tools/checks/soak/lease_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace leasehold::soak {
namespace {

constexpr std::array<std::string_view, 5> kProofs{"LaunchQuiet", "WorkerAck", "ProcessExit",
                                                  "NeverMapped", "MachineRestart"};

/// One event about a lease, and whether the broker died since the last one.
struct Turn {
  const events::LeaseStateChanged& event;
  TimePoint at;
  bool after_death = false;
};

/// What is wrong with this turn; empty when nothing is. After a death the one before it may be
/// missing or told again, but nothing goes back.
std::string take(LeaseStory& story, const Turn& turn) {
  const auto& event = turn.event;
  switch (event.state) {
    case LeaseState::Closed:
      return "was closed, which is no turn";
    case LeaseState::Live:
      if (story.revoked || story.fenced) return "was granted after it was over";
      if (story.granted && !turn.after_death) return "was granted twice";
      story.granted = story.granted.value_or(turn.at);
      story.tenant = event.tenant;
      return {};
    case LeaseState::Revoked:
      if (story.fenced) return "was revoked after its fence";
      if (!turn.after_death && (!story.granted || story.revoked)) {
        return "was revoked without being Live";
      }
      story.revoked = story.revoked.value_or(turn.at);
      story.reason = event.reason;
      return event.reason == RevokeReason::None ? "was revoked for no reason" : "";
    case LeaseState::Fenced:
      if (!turn.after_death && (!story.revoked || story.fenced)) {
        return "was fenced without being Revoked";
      }
      story.fenced = story.fenced.value_or(turn.at);
      story.proof = event.proof;
      return std::ranges::find(kProofs, event.proof) == kProofs.end() ? "was fenced without proof"
                                                                      : "";
  }
  return "took a turn nobody knows";
}

TimePoint last_turn(const LeaseStory& story) {
  return std::max({story.granted.value_or(TimePoint{}), story.revoked.value_or(TimePoint{}),
                   story.fenced.value_or(TimePoint{})});
}

}  // namespace

bool BrokerLife::restarted_between(TimePoint from, TimePoint to) const {
  return std::ranges::any_of(restarts, [&](TimePoint at) { return from <= at && at <= to; });
}

LeaseStories lease_stories(const BrokerLife& life) {
  LeaseStories stories;
  for (const events::StampedEvent& stamped : life.events) {
    const auto* event = std::get_if<events::LeaseStateChanged>(&stamped.event);
    if (event == nullptr) continue;
    LeaseStory& story = stories.leases[event->lease];
    const bool after_death = life.restarted_between(last_turn(story), stamped.at);
    const std::string wrong = take(story, {*event, stamped.at, after_death});
    if (wrong.empty()) continue;
    stories.wrong.push_back(fmt::format("lease {} {}", to_string(event->lease), wrong));
  }
  return stories;
}

std::optional<std::size_t> life_of(const std::vector<LeaseStories>& lives, LeaseId lease,
                                   const std::string& tenant, TimePoint acquired_at) {
  for (std::size_t i = lives.size(); i-- > 0;) {
    const auto found = lives[i].leases.find(lease);
    if (found == lives[i].leases.end()) continue;
    const LeaseStory& story = found->second;
    if (story.tenant == tenant && story.granted && *story.granted <= acquired_at) return i;
  }
  return std::nullopt;
}

}  // namespace leasehold::soak
