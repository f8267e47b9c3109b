#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/checks/demo/check_groups.hpp"
#include "tools/cli/table.hpp"

namespace leasehold::demo {
namespace {

using cli::nanoseconds_text;

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

std::string clocks_text(const wire::RevokeClocks& clocks) {
  return fmt::format("t_refuse {}, t_error {}, t_quiet {}, t_reuse {}",
                     nanoseconds_text(clocks.refuse_ns), nanoseconds_text(clocks.error_ns),
                     nanoseconds_text(clocks.quiet_ns), nanoseconds_text(clocks.reuse_ns));
}

/// A dead holder cannot receive an error, so only a live holder needs t_refuse and t_error.
Check clocks(const wire::LeaseView* lease, bool holder_lives, const std::string& whose) {
  const std::string_view which = holder_lives ? "all four clocks" : "t_quiet and t_reuse";
  Check check{.promise = fmt::format("{} of {} are measured, t_reuse last", which, whose),
              .seen = history(lease)};
  if (lease == nullptr) return check;
  const wire::RevokeClocks& at = lease->clocks;
  check.seen = clocks_text(at);
  check.ok = at.quiet_ns >= 0 && at.reuse_ns >= at.quiet_ns &&
             (!holder_lives || (at.refuse_ns >= 0 && at.error_ns >= at.refuse_ns));
  return check;
}

void check_survivor(const Observation& seen, const TenantResult& result,
                    std::vector<Check>& checks) {
  const auto& leases = result.observed.leases;
  if (leases.size() != 1) {
    checks.push_back({.promise = fmt::format("{} has exactly one lease", result.spec.name),
                      .seen = fmt::format("{} leases", leases.size())});
    return;
  }
  checks.push_back(ended(seen.lease(leases[0]), RevokeReason::Released,
                         fmt::format("{}'s only lease", result.spec.name)));
}

void check_rebound(const Observation& seen, const TenantResult& result,
                   std::vector<Check>& checks) {
  const auto& observed = result.observed;
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

void check_killed(const Observation& seen, const TenantResult& result, std::vector<Check>& checks) {
  const auto& leases = result.observed.leases;
  const auto* lease = leases.size() == 1 ? seen.lease(leases[0]) : nullptr;
  checks.push_back(ended(lease, RevokeReason::HolderGone, "C's lease"));
  checks.push_back(clocks(lease, false, "C's lease"));
}

}  // namespace

void check_leases(const Observation& seen, std::vector<Check>& checks) {
  for (const TenantResult& result : seen.results) {
    if (result.spec.name == seen.revoked) {
      check_rebound(seen, result, checks);
    } else if (result.spec.name == seen.killed) {
      check_killed(seen, result, checks);
    } else {
      check_survivor(seen, result, checks);
    }
  }
}

}  // namespace leasehold::demo
