#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/expects.hpp"
#include "tests/checks/demo/observation.hpp"
#include "tools/cli/table.hpp"

namespace leasehold::demo {
namespace {

using cli::nanoseconds_text;
using events::StampedEvent;

// ----------------------------------------------------------------------------------------- leases

std::string history(const wire::LeaseView* lease) {
  if (lease == nullptr) return "the broker does not list the lease";
  return fmt::format("lease {} {} {} by {}", to_string(lease->lease), name(lease->state),
                     name(lease->reason), cli::or_dash(lease->proof));
}

/// Checks that the lease ended with `reason` and has a fence proof.
Check ended(const wire::LeaseView* lease, RevokeReason reason, const std::string& whose) {
  return {.promise = fmt::format("{} ended with reason {} and was fenced with a proof", whose,
                                 name(reason)),
          .ok = lease != nullptr && lease->state == LeaseState::Fenced && lease->reason == reason &&
                !lease->proof.empty(),
          .seen = history(lease)};
}

/// A dead holder cannot receive an error, so only a live holder needs t_refuse and t_error.
Check clocks(const wire::LeaseView* lease, bool holder_lives, const std::string& whose) {
  const std::string_view which = holder_lives ? "all four clocks" : "t_quiet and t_reuse";
  Check check{.promise = fmt::format("{} of {} are measured, t_reuse last", which, whose),
              .seen = history(lease)};
  if (lease == nullptr) return check;
  const wire::RevokeClocks& at = lease->clocks;
  check.seen = fmt::format("t_refuse {}, t_error {}, t_quiet {}, t_reuse {}",
                           nanoseconds_text(at.refuse_ns), nanoseconds_text(at.error_ns),
                           nanoseconds_text(at.quiet_ns), nanoseconds_text(at.reuse_ns));
  check.ok = at.quiet_ns >= 0 && at.reuse_ns >= at.quiet_ns &&
             (!holder_lives || (at.refuse_ns >= 0 && at.error_ns >= at.refuse_ns));
  return check;
}

void judge_survivor(const Observation& seen, const TenantResult& result,
                    std::vector<Check>& checks) {
  const auto& leases = result.observed.leases;
  if (leases.size() == 1) {
    checks.push_back(ended(seen.lease(leases[0]), RevokeReason::Released,
                           fmt::format("{}'s only lease", result.spec.name)));
  } else {
    checks.push_back({.promise = fmt::format("{} has exactly one lease", result.spec.name),
                      .seen = fmt::format("{} leases", leases.size())});
  }
}

void judge_rebound(const Observation& seen, const TenantRecord& observed,
                   std::vector<Check>& checks) {
  checks.push_back(
      {.promise = "B was notified that the operator revoked its lease, then got another",
       .ok = observed.leases.size() == 2 && observed.revocations.size() == 1 &&
             observed.revocations[0].reason == "operator" &&
             observed.revocations[0].lease == observed.leases[0],
       .seen = fmt::format("{} leases, {} revocations observed", observed.leases.size(),
                           observed.revocations.size())});
  if (observed.leases.size() != 2) return;
  const auto* first = seen.lease(observed.leases[0]);
  checks.push_back(ended(first, RevokeReason::Operator, "B's first lease"));
  checks.push_back(clocks(first, true, "B's first lease"));
  checks.push_back(
      ended(seen.lease(observed.leases[1]), RevokeReason::Released, "B's second lease"));
}

void judge_leases(const Observation& seen, std::vector<Check>& checks) {
  for (const TenantResult& result : seen.results) {
    const auto& leases = result.observed.leases;
    if (result.spec.name == seen.revoked) {
      judge_rebound(seen, result.observed, checks);
    } else if (result.spec.name == seen.killed) {
      const auto* lease = leases.size() == 1 ? seen.lease(leases[0]) : nullptr;
      checks.push_back(ended(lease, RevokeReason::HolderGone, "C's lease"));
      checks.push_back(clocks(lease, false, "C's lease"));
    } else {
      judge_survivor(seen, result, checks);
    }
  }
}

// ----------------------------------------------------------------------------------------- events

/// Finds the first event of this kind that `wanted` accepts.
template <class Kind, class Wanted>
const StampedEvent* find(const Observation& seen, Wanted wanted) {
  const auto& all = seen.brokers.front().events;
  const auto found = std::ranges::find_if(all, [&](const StampedEvent& candidate) {
    const auto* event = std::get_if<Kind>(&candidate.event);
    return event != nullptr && wanted(*event);
  });
  return found == all.end() ? nullptr : &*found;
}

const StampedEvent* transition(const Observation& seen, LeaseId lease, LeaseState state) {
  return find<events::LeaseStateChanged>(
      seen, [&](const auto& e) { return e.lease == lease && e.state == state; });
}

/// Finds the event in which an extent of the lease entered this state. Matches by extent, because a
/// free extent has no lease.
const StampedEvent* memory_transition(const Observation& seen, LeaseId lease,
                                      std::string_view state) {
  return find<events::RegionStateChanged>(seen, [&](const auto& e) {
    return e.kind == "extent" && e.state == state &&
           std::ranges::any_of(seen.extents, [&](const CheckedExtent& extent) {
             return extent.lease == lease && extent.extent.value == e.region;
           });
  });
}

Check refused(const Observation& seen, LeaseId lease, const std::string& whose) {
  Check check{.promise = "the worker refused a launch under " + whose,
              .seen = "no forward_revoked event"};
  const auto* stamped =
      find<events::ForwardRevoked>(seen, [&](const auto& e) { return e.lease == lease; });
  if (stamped == nullptr) return check;
  const auto& event = std::get<events::ForwardRevoked>(stamped->event);
  const auto* flip = transition(seen, lease, LeaseState::Revoked);
  check.ok = event.since_flip_ns >= 0 && flip != nullptr && flip->at <= stamped->at;
  check.seen =
      fmt::format("{} of layer {} at position {}, {} after the flip", name(event.kernel_site),
                  event.layer, event.kv_position, nanoseconds_text(event.since_flip_ns));
  return check;
}

Check rebound(const Observation& seen, LeaseId from, LeaseId to) {
  const auto* event = find<events::Rebind>(
      seen, [&](const auto& e) { return e.old_lease == from && e.new_lease == to; });
  return {.promise = "the broker recorded the rebind from B's first lease to its second",
          .ok = event != nullptr,
          .seen = event == nullptr ? "no rebind event"
                                   : fmt::format("{} → {}", to_string(from), to_string(to))};
}

/// Checks that every event of the lease exists, and that none is earlier than the one before it.
///
/// The refusal has no fixed place in this order: a worker between two units is quiet, so its lease
/// is fenced before the worker polls again. Memory of a device is held for its worker, not freed.
Check order(const Observation& seen, LeaseId lease, const std::string& whose) {
  std::vector<std::pair<std::string_view, const StampedEvent*>> expected{
      {"granted", transition(seen, lease, LeaseState::Live)},
      {"revoked", transition(seen, lease, LeaseState::Revoked)},
      {"fenced", transition(seen, lease, LeaseState::Fenced)}};
  if (seen.reads_memory) {
    expected.emplace_back("scrubbing", memory_transition(seen, lease, "Scrubbing"));
    expected.emplace_back("free", memory_transition(seen, lease, "Free"));
  }
  Check check{.promise = whose +
                         (seen.reads_memory ? " was granted, revoked, fenced, scrubbed and freed"
                                            : " was granted, revoked and fenced") +
                         " in this order",
              .ok = true};
  const StampedEvent* before = nullptr;
  for (const auto& [what, event] : expected) {
    const bool fits = event != nullptr && (before == nullptr || before->at <= event->at);
    check.ok = check.ok && fits;
    check.seen += fmt::format("{}{}{}", check.seen.empty() ? "" : " → ", what,
                              fits ? "" : (event ? " (too early)" : " (missing)"));
    if (event != nullptr) before = event;
  }
  return check;
}

void judge_events(const Observation& seen, std::vector<Check>& checks) {
  const auto& revoked = seen.result(seen.revoked).observed.leases;
  const auto& killed = seen.result(seen.killed).observed.leases;
  if (revoked.size() == 2) {
    checks.push_back(refused(seen, revoked[0], "B's first lease"));
    checks.push_back(rebound(seen, revoked[0], revoked[1]));
    checks.push_back(order(seen, revoked[0], "B's first lease"));
  }
  if (killed.size() == 1) checks.push_back(order(seen, killed[0], "C's lease"));
}

// ----------------------------------------------------------------------------------------- memory

Check scrubbed(const Observation& seen, LeaseId lease, const std::string& whose) {
  std::vector<runner::MemoryReading> before, after;
  bool held = false;
  for (const CheckedExtent& extent : seen.extents) {
    if (extent.lease != lease) continue;
    before.push_back(extent.before);
    after.push_back(extent.after);
    held = held || extent.still_held;
  }
  const runner::MemoryReading was = sum(before);
  const runner::MemoryReading is = sum(after);
  return {
      .promise = fmt::format("the memory of {} held data before, and is zero and free now", whose),
      .ok = was.nonzero_bytes > 0 && is.nonzero_bytes == 0 && is.allocated_bytes == 0 && !held,
      .seen = fmt::format("{} extents: {} bytes not zero before, {} after; {} allocated, {}",
                          after.size(), was.nonzero_bytes, is.nonzero_bytes,
                          cli::bytes_text(is.allocated_bytes), held ? "still held" : "not held")};
}

void judge_memory(const Observation& seen, std::vector<Check>& checks) {
  const auto& revoked = seen.result(seen.revoked).observed.leases;
  const auto& killed = seen.result(seen.killed).observed.leases;
  if (!revoked.empty() && seen.reads_memory)
    checks.push_back(scrubbed(seen, revoked[0], "B's first lease"));
  if (!killed.empty() && seen.reads_memory)
    checks.push_back(scrubbed(seen, killed[0], "C's lease"));
  checks.push_back(runner::conserved(seen));
  checks.push_back(runner::all_free(seen));
}

// --------------------------------------------------------------------------------------- adapters

Check loaded_again(const Observation& seen, const RevokedAdapter& adapter) {
  const auto* event = adapter.second
                          ? find<events::AdapterLoaded>(
                                seen, [&](const auto& e) { return e.lease == *adapter.second; })
                          : nullptr;
  return {.promise = "the adapter was loaded again under a fresh lease",
          .ok = event != nullptr && *adapter.second != adapter.first,
          .seen = event == nullptr ? "it was not"
                                   : fmt::format("{} → {}", to_string(adapter.first),
                                                 to_string(*adapter.second))};
}

/// No error is expected: an adapter's lease has no holder that could get one.
void judge_adapter(const Observation& seen, const RevokedAdapter& adapter,
                   std::vector<Check>& checks) {
  const std::string whose = "the adapter's first lease";
  const auto* lease = seen.lease(adapter.first);
  checks.push_back(ended(lease, RevokeReason::Operator, whose));
  checks.push_back(clocks(lease, false, whose));
  checks.push_back(refused(seen, adapter.first, whose));
  checks.push_back(order(seen, adapter.first, whose));
  if (seen.reads_memory) checks.push_back(scrubbed(seen, adapter.first, whose));
  checks.push_back(loaded_again(seen, adapter));
}

}  // namespace

const TenantResult& Observation::result(const std::string& name) const {
  const auto found = std::ranges::find_if(
      results, [&](const TenantResult& candidate) { return candidate.spec.name == name; });
  expects(found != results.end(), "the scenario has this name");
  return *found;
}

const wire::LeaseView* Observation::lease(LeaseId id) const {
  const auto found = std::ranges::find(leases, id, &wire::LeaseView::lease);
  return found == leases.end() ? nullptr : &*found;
}

std::vector<Check> judge(const Observation& seen) {
  std::vector<Check> checks;
  judge_texts(seen, checks);
  judge_leases(seen, checks);
  judge_events(seen, checks);
  judge_memory(seen, checks);
  if (seen.adapter) judge_adapter(seen, *seen.adapter, checks);
  return checks;
}

}  // namespace leasehold::demo
