#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "tests/checks/demo/check_groups.hpp"
#include "tools/cli/table.hpp"

namespace leasehold::demo {
namespace {

/// Finds the first event of this kind that `wanted` accepts.
template <class Kind, class Wanted>
const events::StampedEvent* find(const Observation& seen, Wanted wanted) {
  const auto found = std::ranges::find_if(seen.events, [&](const events::StampedEvent& candidate) {
    const auto* event = std::get_if<Kind>(&candidate.event);
    return event != nullptr && wanted(*event);
  });
  return found == seen.events.end() ? nullptr : &*found;
}

const events::StampedEvent* transition(const Observation& seen, LeaseId lease, LeaseState state) {
  return find<events::LeaseStateChanged>(
      seen, [&](const auto& e) { return e.lease == lease && e.state == state; });
}

const events::StampedEvent* refusal(const Observation& seen, LeaseId lease) {
  return find<events::ForwardRevoked>(seen, [&](const auto& e) { return e.lease == lease; });
}

/// Finds the event in which an extent of the lease entered this state. Matches by extent, because a
/// free extent has no lease.
const events::StampedEvent* memory_transition(const Observation& seen, LeaseId lease,
                                              std::string_view state) {
  return find<events::RegionStateChanged>(seen, [&](const auto& e) {
    return e.kind == "extent" && e.state == state &&
           std::ranges::any_of(seen.extents, [&](const CheckedExtent& extent) {
             return extent.lease == lease && extent.extent.value == e.region;
           });
  });
}

Check refused(const Observation& seen, LeaseId lease) {
  Check check{.promise = "the worker refused a launch under B's first lease",
              .seen = "no forward_revoked event"};
  const auto* stamped = refusal(seen, lease);
  if (stamped == nullptr) return check;
  const auto& event = std::get<events::ForwardRevoked>(stamped->event);
  const auto* flip = transition(seen, lease, LeaseState::Revoked);
  check.ok = event.since_flip_ns >= 0 && flip != nullptr && flip->at <= stamped->at;
  check.seen =
      fmt::format("{} of layer {} at position {}, {} after the flip", name(event.kernel_site),
                  event.layer, event.kv_position, cli::nanoseconds_text(event.since_flip_ns));
  return check;
}

Check rebound(const Observation& seen, const TenantRecord& observed) {
  const auto* event = find<events::Rebind>(seen, [&](const auto& e) {
    return e.old_lease == observed.leases[0] && e.new_lease == observed.leases[1];
  });
  return {.promise = "the broker recorded the rebind from B's first lease to its second",
          .ok = event != nullptr,
          .seen = event == nullptr ? "no rebind event"
                                   : fmt::format("{} → {}", to_string(observed.leases[0]),
                                                 to_string(observed.leases[1]))};
}

struct Moment {
  std::string_view what;
  const events::StampedEvent* event = nullptr;
};

/// Checks that every event exists, and that none is earlier than the one before it.
Check in_order(std::string promise, const std::vector<Moment>& moments) {
  Check check{.promise = std::move(promise), .ok = true};
  const events::StampedEvent* before = nullptr;
  for (const Moment& moment : moments) {
    const bool fits =
        moment.event != nullptr && (before == nullptr || before->at <= moment.event->at);
    check.ok = check.ok && fits;
    check.seen += fmt::format("{}{}{}", check.seen.empty() ? "" : " → ", moment.what,
                              fits ? "" : (moment.event ? " (too early)" : " (missing)"));
    if (moment.event != nullptr) before = moment.event;
  }
  return check;
}

/// The refusal has no fixed place in this order: a worker between two units is quiet, so its lease
/// is fenced before the worker polls again. Memory of a device is held for its worker, not freed.
Check order(const Observation& seen, LeaseId lease, const std::string& whose) {
  std::vector<Moment> moments{{"granted", transition(seen, lease, LeaseState::Live)},
                              {"revoked", transition(seen, lease, LeaseState::Revoked)},
                              {"fenced", transition(seen, lease, LeaseState::Fenced)}};
  if (!seen.reads_memory)
    return in_order(whose + " was granted, revoked and fenced in this order", moments);
  moments.push_back({"scrubbing", memory_transition(seen, lease, "Scrubbing")});
  moments.push_back({"free", memory_transition(seen, lease, "Free")});
  return in_order(whose + " was granted, revoked, fenced, scrubbed and freed in this order",
                  moments);
}

}  // namespace

void check_events(const Observation& seen, std::vector<Check>& checks) {
  const TenantRecord& revoked = seen.result(seen.revoked).observed;
  const TenantRecord& killed = seen.result(seen.killed).observed;
  if (revoked.leases.size() == 2) {
    checks.push_back(refused(seen, revoked.leases[0]));
    checks.push_back(rebound(seen, revoked));
    checks.push_back(order(seen, revoked.leases[0], "B's first lease"));
  }
  if (killed.leases.size() == 1) {
    checks.push_back(order(seen, killed.leases[0], "C's lease"));
  }
}

}  // namespace leasehold::demo
