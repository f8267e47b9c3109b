#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <tuple>

#include "common/errc.hpp"
#include "tests/checks/runner/judge_case.hpp"

namespace leasehold::runner {
namespace {

using LeaseEvents = std::span<const TenantEvent>;

bool is(const TenantEvent& reported, std::string_view event) {
  return reported.event == event;
}

bool is_end(const TenantEvent& reported) {
  return is(reported, "completed") || is(reported, "failed");
}

std::size_t count(LeaseEvents lease_events, std::string_view event) {
  return static_cast<std::size_t>(std::ranges::count_if(
      lease_events, [&](const TenantEvent& reported) { return is(reported, event); }));
}

/// Splits the events at each `acquired`.
std::vector<LeaseEvents> split_by_lease(const std::vector<TenantEvent>& reported) {
  std::vector<LeaseEvents> all;
  for (std::size_t begin = 0; begin < reported.size(); ++begin) {
    if (!is(reported[begin], "acquired")) continue;
    std::size_t end = begin + 1;
    while (end < reported.size() && !is(reported[end], "acquired")) ++end;
    all.push_back({&reported[begin], end - begin});
  }
  return all;
}

/// True if the lease was ended by another party than its holder.
bool was_revoked_by_other(const LeaseTrace& trace) {
  return trace.revoked && trace.reason != RevokeReason::Released &&
         trace.reason != RevokeReason::HolderGone;
}

bool is_lease_over_code(std::string_view code) {
  const auto known = errc_from_name(code);
  return known && is_lease_ended(*known);
}

/// The first lease id in the text.
std::optional<LeaseId> lease_in(std::string_view detail) {
  constexpr std::string_view kBefore = "lease ";
  for (auto at = detail.find(kBefore); at != detail.npos; at = detail.find(kBefore, at + 1)) {
    const std::string_view rest = detail.substr(at + kBefore.size());
    const auto lease = LeaseId::parse(rest.substr(0, rest.find_first_not_of("0123456789.")));
    if (lease) return *lease;
  }
  return std::nullopt;
}

/// True for a retry or failure because this lease ended. An error that names another lease does not
/// count.
bool names_as_cause(const TenantEvent& reported, LeaseId lease) {
  const bool in_words =
      !is_dependency(reported.scope) && (is(reported, "retry") || is(reported, "failed"));
  return in_words && is_lease_over_code(reported.why) &&
         lease_in(reported.detail).value_or(lease) == lease;
}

/// How often the holder was notified that this lease ended. The event after the end of the stream
/// says what the tenant does next, so it is not a second notification. Refusals of `renew` and
/// `release` are not printed, because they answer a call.
std::size_t notifications(LeaseEvents lease_events, LeaseId lease) {
  std::size_t notifications = 0;
  bool was_end = false;
  for (const TenantEvent& reported : lease_events) {
    const bool is_end_of_stream = is(reported, "revoked") && reported.lease == lease;
    if (is_end_of_stream || (names_as_cause(reported, lease) && !was_end)) ++notifications;
    was_end = is_end_of_stream;
  }
  return notifications;
}

/// A lease as its holder saw it, from its grant to the grant of the next lease.
struct HeldLease {
  LeaseEvents events;
  const LeaseTrace* trace = nullptr;
  /// The holder had the next lease before this one ended, or requested a lease on another worker,
  /// which ended this one. Reports about the end, if any, then follow the grant of the next lease.
  bool was_replaced = false;
};

/// Describes a wrong notification about this lease; empty if all are right.
std::string notification_error(const HeldLease& held, const std::optional<LeaseId>& replaced,
                               bool was_killed) {
  const auto& [lease_events, trace, was_replaced] = held;
  const LeaseId lease = *lease_events.front().lease;
  const std::size_t times = notifications(lease_events, lease);
  if (times > 1) return fmt::format("was notified {} times of lease {}", times, to_string(lease));
  const auto foreign = std::ranges::any_of(lease_events, [&](const TenantEvent& reported) {
    return is(reported, "revoked") && !is_dependency(reported.scope) && reported.lease != lease &&
           reported.lease != replaced;
  });
  if (foreign) return fmt::format("was notified of another lease under {}", to_string(lease));
  // A holder that never submitted got a refusal instead; a killed holder may not have read the
  // notification.
  const bool must_be_notified = trace != nullptr && was_revoked_by_other(*trace) && !was_killed &&
                                !was_replaced && count(lease_events, "submitted") > 0 &&
                                count(lease_events, "completed") == 0;
  // A holder whose worker or connection died got a retry or a failure instead.
  const bool heard = times > 0 || count(lease_events, "retry") + count(lease_events, "failed") > 0;
  if (must_be_notified && !heard)
    return fmt::format("was never notified of lease {}", to_string(lease));
  return {};
}

const LeaseTrace* trace_of(const Case& all, const Text& tenant, LeaseEvents lease_events) {
  const LeaseId lease = *lease_events.front().lease;
  const auto instance = all.instance_of(lease, tenant.tenant, lease_events.front().at);
  return instance ? &all.instances[*instance].leases.at(lease) : nullptr;
}

std::vector<HeldLease> held_leases(const Case& all, const Text& tenant) {
  std::vector<HeldLease> held;
  for (const LeaseEvents lease_events : split_by_lease(tenant.record.reported)) {
    const LeaseTrace* const trace = trace_of(all, tenant, lease_events);
    if (!held.empty()) {
      const LeaseTrace* before = held.back().trace;
      const bool has_ended = before != nullptr && before->revoked;
      // A client whose worker is gone reports the next lease once a worker has accepted it.
      const bool has_next =
          has_ended && trace != nullptr && trace->granted && *trace->granted < *before->revoked;
      held.back().was_replaced =
          has_ended && (has_next || lease_events.front().at < *before->revoked ||
                        before->reason == RevokeReason::WorkerReplaced);
    }
    held.push_back({.events = lease_events, .trace = trace});
  }
  return held;
}

Check notified_of_own_end(const Case& all) {
  Finding finding("no holder got two reports of one lease; one whose request was cut got one",
                  "leases held");
  for (const Text& tenant : all.record.texts) {
    std::optional<LeaseId> replaced;
    for (const HeldLease& held : held_leases(all, tenant)) {
      finding.checked();
      const std::string wrong = notification_error(held, replaced, tenant.was_killed);
      if (!wrong.empty()) finding.wrong(fmt::format("{} {}", tenant.tenant, wrong));
      replaced = held.was_replaced ? held.events.front().lease : std::nullopt;
    }
  }
  return finding.check();
}

using Ended = events::RequestCompletedEvent;

bool is_lease_end(const Ended& ended) {
  return ended.reason == "Revoked" || is_lease_over_code(ended.reason);
}

/// The leases of adapters and of published texts, by the scope of their end. Those of texts have no
/// tenant, but have extents, which leases of weights do not have.
std::map<std::string_view, std::set<LeaseId>> dependencies(const BrokerInstance& broker,
                                                           const LeaseTraces& traces) {
  std::set<LeaseId> adapters, texts;
  const auto add_adapter = [&adapters](const auto& event, TimePoint) {
    adapters.insert(event.lease);
  };
  for_each_event<events::AdapterLoaded>(broker.events, add_adapter);
  for_each_event<events::AdapterEvicted>(broker.events, add_adapter);
  for_each_event<events::RegionStateChanged>(broker.events, [&](const auto& extent, TimePoint) {
    const auto lease = LeaseId::parse(extent.lease);
    const auto trace = lease ? traces.leases.find(*lease) : traces.leases.end();
    if (trace == traces.leases.end() || !trace->second.tenant.empty()) return;
    if (!adapters.contains(*lease)) texts.insert(*lease);
  });
  return {{name(FailureScope::Adapter), adapters}, {name(FailureScope::Shared), texts}};
}

/// True if the end of this text or adapter may have ended a stream of the lease `own` before `at`.
/// A broker that died may have logged the revocation late, or not at all.
bool may_have_ended_stream(const BrokerInstance& broker, const LeaseTrace& dependency,
                           const LeaseTrace& own, TimePoint at) {
  if (dependency.fenced && own.granted && *dependency.fenced < *own.granted) return false;
  if (dependency.revoked && *dependency.revoked <= at) return true;
  constexpr TimePoint kNever{std::numeric_limits<std::int64_t>::max()};
  const TimePoint granted = dependency.granted.value_or(TimePoint{});
  return granted <= at && broker.restarted_between(granted, dependency.revoked.value_or(kNever));
}

/// The same check on the worker's side, for the ends that it wrote to the holder's socket. The end
/// of a published text or an adapter also ends a stream once, while the stream's lease stays live.
/// Events name neither that lease nor the worker of a lease, so each lease that may have ended a
/// stream allows one such end.
Check sent_once(const Case& all) {
  Finding finding("no stream got the end of its lease twice", "ends of leases sent");
  for (std::size_t i = 0; i < all.instances.size(); ++i) {
    const BrokerInstance& broker = all.record.brokers[i];
    const auto& leases = all.instances[i].leases;
    const auto by_scope = dependencies(broker, all.instances[i]);
    std::map<std::tuple<std::string, LeaseId, std::string>, std::ptrdiff_t> sent;
    for_each_event<Ended>(broker.events, [&](const Ended& ended, TimePoint at) {
      if (!is_lease_end(ended)) return;
      finding.checked();
      const auto trace = leases.find(ended.lease);
      const LeaseTrace own = trace == leases.end() ? LeaseTrace{} : trace->second;
      const std::string scope = is_dependency(ended.scope) ? ended.scope : "";
      const auto times = ++sent[{ended.request.value, ended.lease, scope}];
      const auto is_cause = [&](LeaseId id) {
        const auto found = leases.find(id);
        return found != leases.end() && may_have_ended_stream(broker, found->second, own, at);
      };
      const auto allowed = scope.empty() ? 1 : std::ranges::count_if(by_scope.at(scope), is_cause);
      if (times > allowed)
        finding.wrong(fmt::format("{} of lease {}", ended.tenant, to_string(ended.lease)));
    });
  }
  return finding.check(0);
}

Check ended_once(const Case& all) {
  Finding finding("every tenant that was not killed ended once, with a reason", "tenants");
  for (const Text& tenant : all.record.texts) {
    finding.checked();
    const auto& reported = tenant.record.reported;
    const auto ends = std::ranges::count_if(reported, is_end);
    const bool once = tenant.was_killed ? ends <= 1 : ends == 1;
    const bool last = ends == 0 || is_end(reported.back());
    if (once && last) continue;
    finding.wrong(fmt::format("{} ended {} times{}", tenant.tenant, ends,
                              last ? "" : " and printed more afterwards"));
  }
  return finding.check();
}

/// The broker may SIGKILL a worker that misses its fence timeout. Exit code 1 is an unhandled
/// error.
bool is_crash(int status) {
  return status == 1 || (status > 128 && status != 128 + SIGKILL);
}

Check no_crash(const Case& all) {
  Finding finding("no process crashed", "exits that the script did not cause");
  const auto judge_exit = [&finding](const std::string& program, int status) {
    finding.sample(is_crash(status) ? fmt::format("{} ended with {}", program, status) : "");
  };
  for (const ExitRecord& end : all.record.ends) judge_exit(end.program, end.status);
  for (const Text& text : all.record.texts)
    if (!text.was_killed) judge_exit(text.tenant, text.exit_status);
  return finding.check(0);
}

/// A record accepts only the next position, so each position arrived once.
Check same_texts(const Case& all) {
  Finding finding("every text is the undisturbed one, or a prefix of it when it was cut off",
                  "tokens");
  for (const Text& text : all.record.texts) {
    finding.checked(text.record.tokens.size());
    const std::string wrong = text_error(text);
    if (!wrong.empty()) finding.wrong(fmt::format("{} {}", text.tenant, wrong));
  }
  return finding.check();
}

/// Checks that the next process with the request id of a killed one gets the whole text, unless it
/// gave up.
Check resumed_whole(const Case& all) {
  Finding finding("the text of a killed process came whole to the next one", "texts");
  std::map<std::string, std::vector<const Text*>> by_id;
  for (const Text& tenant : all.record.texts)
    if (!tenant.request_id.empty()) by_id[tenant.request_id].push_back(&tenant);
  for (const auto& [id, processes] : by_id) {
    if (!processes.front()->was_killed || processes.front()->record.completed) continue;
    const Text& last = *processes.back();
    if (last.record.failed) continue;
    finding.checked();
    if (!last.record.completed) finding.wrong(fmt::format("{} was never completed", id));
  }
  return finding.check();
}

Check same_swapped_texts(const Case& all) {
  Finding finding("every text that was swapped is the undisturbed one, or a prefix of it", "texts");
  for (const Text& text : all.record.swapped_texts) {
    const std::string wrong = text_error(text);
    finding.sample(wrong.empty() ? "" : fmt::format("{} {}", text.tenant, wrong));
  }
  Check check = finding.check();
  check.ok = check.ok && *all.record.swaps > 0;
  check.seen += fmt::format(", {} swaps", *all.record.swaps);
  return check;
}

}  // namespace

void judge_holders(const Case& all, std::vector<Check>& checks) {
  checks.push_back(notified_of_own_end(all));
  checks.push_back(sent_once(all));
  checks.push_back(ended_once(all));
  checks.push_back(same_texts(all));
  const auto is_resumable = [](const Text& tenant) { return !tenant.request_id.empty(); };
  if (std::ranges::any_of(all.record.texts, is_resumable)) checks.push_back(resumed_whole(all));
  if (all.record.swaps) checks.push_back(same_swapped_texts(all));
  checks.push_back(no_crash(all));
}

}  // namespace leasehold::runner
