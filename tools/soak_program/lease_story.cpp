#include "tools/soak_program/lease_story.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace leasehold::soak {
namespace {

constexpr std::array<std::string_view, 5> kProofs{"LaunchQuiet", "WorkerAck", "ProcessExit",
                                                  "NeverMapped", "MachineRestart"};

/// What is wrong with this turn; empty when nothing is.
std::string turn(LeaseStory& story, const events::LeaseStateChanged& event, TimePoint at) {
  switch (event.state) {
    case LeaseState::Closed:
      return "was closed, which is no turn";
    case LeaseState::Live:
      if (story.granted) return "was granted twice";
      story.granted = at;
      story.tenant = event.tenant;
      return {};
    case LeaseState::Revoked:
      if (!story.granted || story.revoked || story.fenced) return "was revoked without being Live";
      story.revoked = at;
      story.reason = event.reason;
      return event.reason == RevokeReason::None ? "was revoked for no reason" : "";
    case LeaseState::Fenced:
      if (!story.revoked || story.fenced) return "was fenced without being Revoked";
      story.fenced = at;
      story.proof = event.proof;
      return std::ranges::find(kProofs, event.proof) == kProofs.end() ? "was fenced without proof"
                                                                      : "";
  }
  return "took a turn nobody knows";
}

}  // namespace

LeaseStories lease_stories(const std::vector<events::StampedEvent>& events) {
  LeaseStories stories;
  for (const events::StampedEvent& stamped : events) {
    const auto* event = std::get_if<events::LeaseStateChanged>(&stamped.event);
    if (event == nullptr) continue;
    const std::string wrong = turn(stories.leases[event->lease], *event, stamped.at);
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
