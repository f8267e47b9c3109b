#include "worker/engine/leases/lease_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace leasehold {
namespace {

Completed revoked(LeaseId lease, LeaseWord word) {
  return {.reason = CompletionReason::Revoked,
          .revocation = RevocationInfo{.lease = lease, .reason = word.reason()}};
}

}  // namespace

/// A lease ends at its deadline, also while the broker is disconnected.
LeaseExpiry LeaseChecks::expiry_of(LeaseId lease) const {
  return {.deadline = deps_.table->deadline(lease),
          .broker_disconnected = *deps_.broker_disconnected};
}

void LeaseChecks::stop_due(RunningRequests& running_requests, TimePoint now) const {
  running_requests.stop_due([&](const RunningRequest& running_request) {
    return deadline_stop(running_request, expiry_of(running_request.lease), now);
  });
}

Completed LeaseChecks::revocation_of(LeaseId lease) const {
  return revoked(lease, deps_.table->word_of(lease));
}

std::optional<Completed> LeaseChecks::completion_for(LeaseId lease) const {
  const LeaseWord word = deps_.table->word_of(lease);
  if (word.state() != LeaseState::Live) return revoked(lease, word);
  const LocalStop stop = expiry_stop(expiry_of(lease), deps_.clock->now());
  if (stop == LocalStop::None) return std::nullopt;
  return stopped_by(stop, lease);
}

Result<void> LeaseChecks::check_usable(LeaseId lease) const {
  if (deps_.table->word_of(lease).state() == LeaseState::Fenced) {
    return fail(Errc::LeaseFenced,
                fmt::format("lease {} is fenced; acquire a new lease", to_string(lease)));
  }
  if (const auto end = completion_for(lease)) {
    if (end->error) return std::unexpected(*end->error);
    return fail(Errc::LeaseRevoked, fmt::format("lease {} was revoked ({}); acquire a new lease",
                                                to_string(lease), name(end->revocation->reason)));
  }
  if (!is_draining(lease)) return {};
  return fail(Errc::Draining,
              fmt::format("lease {} is draining; acquire a new lease", to_string(lease)));
}

void LeaseChecks::report_found_revoked(LeaseId lease) const {
  const TimePoint now = deps_.clock->now();
  const auto since_word_stored = deps_.table->since_word_stored(lease, now);
  if (!since_word_stored) return;  // expired, not revoked
  deps_.observer->lease_found_revoked({.lease = lease,
                                       .kernel_site = LaunchSite::Commit,
                                       .since_flip_ns = since_word_stored->count()},
                                      now);
}

bool LeaseChecks::is_draining(LeaseId lease) const {
  return deps_.table->drain_deadline(lease).boottime_ns != 0;
}

std::vector<LeaseId> LeaseChecks::take_drained(const Tenancies& tenancies) {
  std::set<LeaseId> drained;
  for (const auto& [lease, tenancy] : tenancies) {
    const bool is_idle = tenancy.running == 0 && tenancy.waiting.empty();
    if (is_idle && is_draining(lease)) drained.insert(lease);
  }
  std::vector<LeaseId> fresh;
  std::ranges::set_difference(drained, drained_, std::back_inserter(fresh));
  drained_ = std::move(drained);
  return fresh;
}

}  // namespace leasehold
