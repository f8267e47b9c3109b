#include "tools/brokerctl/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/cli/print_error.hpp"

namespace leasehold::brokerctl {
namespace {

using wire::LeaseView;

constexpr const char* kNotRevoked = "not revoked yet";

/// These functions return nothing for a step that has no time yet: `boottime_ns` is then 0, and
/// `clock_ns` negative.
std::optional<TimePoint> time(std::int64_t boottime_ns) {
  if (boottime_ns == 0) return std::nullopt;
  return TimePoint{boottime_ns};
}

std::optional<TimePoint> after_revoke(const LeaseView& lease, std::int64_t clock_ns) {
  if (clock_ns < 0 || lease.times.revoked_boottime_ns == 0) return std::nullopt;
  return TimePoint{lease.times.revoked_boottime_ns + clock_ns};
}

/// True for the leases of published texts and of adapters: requests under other leases read them.
bool lacks_holder(const LeaseView& lease) {
  return lease.scope == wire::LeaseScope::Shared || lease.scope == wire::LeaseScope::Adapter;
}

bool live(const LeaseView& lease) {
  return lease.state == LeaseState::Live;
}

std::string stopped_early(const LeaseView& lease) {
  const auto early = lease.times.revoked_boottime_ns - lease.times.worker_stopped_boottime_ns;
  return fmt::format("the worker stopped the lease {} before the revocation, at its deadline",
                     cli::nanoseconds_text(std::max<std::int64_t>(0, early)));
}

bool was_stopped_early(const LeaseView& lease) {
  return lease.times.worker_stopped_boottime_ns != 0 && lease.times.revoked_boottime_ns != 0;
}

/// `missing` explains why a revoked lease has no time for this step.
TimelineStep step_of(const LeaseView& lease, std::string name, std::optional<TimePoint> at,
                     std::string happened, std::string missing) {
  if (at) return {.name = std::move(name), .at = at, .note = std::move(happened)};
  return {
      .name = std::move(name), .at = at, .note = live(lease) ? kNotRevoked : std::move(missing)};
}

std::string not_refused(const LeaseView& lease) {
  if (was_stopped_early(lease)) return "no unit of it ran at the revocation";
  if (lease.state == LeaseState::Fenced)
    return "no unit polled it after the revocation, or its worker ended before it reported the "
           "poll";
  return "no unit polled it yet, or its worker has not reported it";
}

TimelineStep refused(const LeaseView& lease) {
  return step_of(lease, "refused", after_revoke(lease, lease.clocks.refuse_ns),
                 "first poll of the gate that refused", not_refused(lease));
}

TimelineStep error(const LeaseView& lease) {
  return step_of(lease, "error", after_revoke(lease, lease.clocks.error_ns),
                 "the worker handed the typed error to the holder's socket",
                 was_stopped_early(lease)
                     ? stopped_early(lease)
                     : "no request ran under it, or its worker did not report the error");
}

TimelineStep quiet(const LeaseView& lease) {
  return step_of(lease, "quiet", after_revoke(lease, lease.clocks.quiet_ns),
                 "the last unit that could use its memory ended",
                 lease.state == LeaseState::Revoked
                     ? "a unit that ran at the revocation has not ended"
                     : fmt::format("not needed: the proof is {}", lease.proof));
}

TimelineStep fenced(const LeaseView& lease) {
  return step_of(lease, "fenced", time(lease.times.fenced_boottime_ns), "proof=" + lease.proof,
                 "no proof yet; see `brokerctl status` for its age");
}

std::string not_reusable(const LeaseView& lease) {
  if (lease.state == LeaseState::Revoked) return "not fenced yet";
  if (lease.quarantined_extents == 0)
    return fmt::format(
        "its worker has not unmapped {} extents; see also `brokerctl quarantine list`",
        lease.extents);
  return fmt::format(
      "{} of its extents were written to after the revocation and are quarantined; see "
      "`brokerctl quarantine list`",
      lease.quarantined_extents);
}

TimelineStep reusable(const LeaseView& lease) {
  return step_of(lease, "reusable", after_revoke(lease, lease.clocks.reuse_ns),
                 "its memory was verified to be empty", not_reusable(lease));
}

TimelineStep rebound(const LeaseView& lease) {
  TimelineStep step = step_of(lease, "rebound", time(lease.times.rebound_boottime_ns),
                              "a request continued under another lease",
                              "no request was submitted again under another lease");
  if (lease.replaced_by) step.note += ", replaced_by=" + to_string(*lease.replaced_by);
  return step;
}

TimelineStep drained(const LeaseView& lease) {
  return {.name = "drain end",
          .at = time(lease.drain_deadline_boottime_ns),
          .note = live(lease)
                      ? "no new work is admitted; the broker revokes it at this time at the latest"
                      : "no new work was admitted; it was due to end by this time"};
}

TimelineStep revoked(const LeaseView& lease) {
  return step_of(lease, "revoked", time(lease.times.revoked_boottime_ns),
                 fmt::format("reason={}", name(lease.reason)), kNotRevoked);
}

const TimelineStep* find(const std::vector<TimelineStep>& steps, std::string_view name) {
  for (const TimelineStep& step : steps) {
    if (step.name == name && step.at) return &step;
  }
  return nullptr;
}

/// Formats a duration that is negative for a step before the revocation.
std::string signed_text(Duration duration) {
  const std::int64_t ns = duration.count();
  return ns < 0 ? "-" + cli::nanoseconds_text(-ns) : cli::nanoseconds_text(ns);
}

}  // namespace

std::vector<TimelineStep> timeline_of(const LeaseView& lease) {
  std::vector<TimelineStep> steps{
      {.name = "granted", .at = time(lease.times.granted_boottime_ns), .note = ""}};
  if (lease.drain_deadline_boottime_ns != 0) steps.push_back(drained(lease));
  for (const auto step : {revoked, refused, error, quiet, fenced, reusable, rebound}) {
    // The readers get the error and continue under their own leases.
    if (lacks_holder(lease) && (step == error || step == rebound)) continue;
    steps.push_back(step(lease));
  }
  // A stable sort, so that steps at the same time keep the order above: causes before effects.
  std::ranges::stable_sort(steps, [](const TimelineStep& a, const TimelineStep& b) {
    return a.at && (!b.at || *a.at < *b.at);
  });
  return steps;
}

cli::Table timeline_table(const std::vector<TimelineStep>& steps) {
  cli::Table table{.columns = {{"STEP"},
                               {"AT BOOT (S)", true},
                               {"SINCE REVOKED", true},
                               {"SINCE PREVIOUS", true},
                               {"NOTE"}}};
  const TimelineStep* revocation = find(steps, "revoked");
  const TimelineStep* previous = nullptr;
  for (const TimelineStep& step : steps) {
    const std::string note = cli::or_dash(printable(step.note));
    if (!step.at) {
      table.rows.push_back({step.name, "-", "-", "-", note});
      continue;
    }
    const double seconds = static_cast<double>(step.at->boottime_ns) / 1e9;
    table.rows.push_back({step.name, fmt::format("{:.6f}", seconds),
                          revocation ? signed_text(*step.at - *revocation->at) : "-",
                          previous ? signed_text(*step.at - *previous->at) : "-", note});
    previous = &step;
  }
  return table;
}

wire::Json timeline_json(const LeaseView& lease, const std::vector<TimelineStep>& steps) {
  wire::Json list = wire::Json::array();
  const TimelineStep* revocation = find(steps, "revoked");
  const TimelineStep* previous = nullptr;
  for (const TimelineStep& step : steps) {
    if (!step.at) {
      list.push_back({{"step", step.name}, {"missing", step.note}});
      continue;
    }
    wire::Json entry{
        {"step", step.name}, {"at_boottime_ns", step.at->boottime_ns}, {"note", step.note}};
    if (revocation) entry["since_revoked_ns"] = (*step.at - *revocation->at).count();
    if (previous) entry["since_previous_ns"] = (*step.at - *previous->at).count();
    list.push_back(std::move(entry));
    previous = &step;
  }
  return {{"lease", to_string(lease.lease)},
          {"scope", std::string(wire::name(lease.scope))},
          {"tenant", lease.tenant},
          {"worker", lease.worker},
          {"state", std::string(name(lease.state))},
          {"steps", std::move(list)}};
}

}  // namespace leasehold::brokerctl
