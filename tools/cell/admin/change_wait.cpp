#include "tools/cell/admin/change_wait.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "common/errc.hpp"
#include "tools/cell/admin/views.hpp"
#include "tools/cell/decide/change_progress.hpp"

namespace leasehold::cell {
namespace {

/// Pauses between two looks: hosts apply a change within milliseconds, or take seconds.
constexpr Duration kFirstPause = std::chrono::milliseconds(10);
constexpr Duration kLongestPause = std::chrono::milliseconds(250);

/// Sees how far the hosts are, and expires those that have stopped.
Result<void> look(const Calls& calls, ChangeProgress& progress) {
  const auto reply = TRY(calls.commit(progress.next_read()));
  TRY(progress.replied(reply, calls.clock->now()));
  for (const Expiry& expiry : progress.expired(calls.clock->now()))
    (void)TRY(calls.commit(expiry.transaction));
  return {};
}

/// A host is expired as soon as it may be.
Duration pause_before(const ChangeProgress& progress, Duration regular, TimePoint now) {
  const auto expiry = progress.time_to_expiry(now);
  if (!expiry || *expiry > regular) return regular;
  return std::max(*expiry, Duration::zero()) + std::chrono::milliseconds(1);
}

/// "h1 applied; h2 cut off: stops by itself in 12 s at the latest".
std::string sentence_of(const std::vector<ChangeProgress::Row>& rows) {
  std::vector<std::string> parts;
  for (const auto& row : rows) parts.push_back(row.owner.host.value + " " + row.why);
  return fmt::format("{}", fmt::join(parts, "; "));
}

/// "waiting for: gpu3 cut off: stops by itself in 12 s at the latest".
std::string waiting_sentence(std::vector<ChangeProgress::Row> rows) {
  std::erase_if(rows, [](const auto& row) { return row.state != ChangeProgress::State::Waiting; });
  return "waiting for: " + sentence_of(rows);
}

void add_rows(const std::vector<ChangeProgress::Row>& rows, Answer& answer) {
  const std::vector<std::string> first = answer.table.rows.front();
  answer.table.columns.push_back({"HOST"});
  answer.table.columns.push_back({"WHY"});
  answer.table.rows.clear();
  answer.document["hosts"] = nlohmann::json::array();
  for (const auto& row : rows) {
    answer.table.rows.push_back(first);
    answer.table.rows.back().push_back(row.owner.host.value);
    answer.table.rows.back().push_back(row.why);
    answer.document["hosts"].push_back({{"host", row.owner.host.value}, {"why", row.why}});
  }
  if (!rows.empty()) return;
  answer.table.rows.push_back(first);
  answer.table.rows.back().emplace_back("-");
  answer.table.rows.back().emplace_back("no host has a part");
}

std::unexpected<Error> not_awaited(const TenantChange& change, const Error& why) {
  return fail(why.code, fmt::format("the change is written, but not awaited: {}; `brokerctl cell "
                                    "ledger {}` shows the hosts that are behind",
                                    why.detail, change.tenant.value));
}

/// `looked`: what the last look at etcd returned.
std::unexpected<Error> not_finished(const TenantChange& change,
                                    const std::vector<ChangeProgress::Row>& rows,
                                    const Result<void>& looked) {
  const std::string outage = looked ? "" : fmt::format("; now {}", looked.error().detail);
  return fail(Errc::TimedOut,
              fmt::format("the change is written, but not every host has applied it: {}{}; "
                          "the same command waits again, and `brokerctl cell ledger {}` shows "
                          "those that are behind",
                          sentence_of(rows), outage, change.tenant.value));
}

/// An outage of etcd passes; other errors do not.
bool may_pass(const Error& error) {
  return is_retryable(error.code) || error.code == Errc::ConnectionLost ||
         error.code == Errc::ConnectionRefused || error.code == Errc::TimedOut;
}

}  // namespace

Result<void> wait_for_hosts(const Calls& calls, const TenantChange& change, Duration timeout,
                            Answer& answer) {
  const auto terms = read_terms(calls);
  if (!terms) return not_awaited(change, terms.error());
  ChangeProgress progress(calls.keys, change.tenant, change.changed, change.before, terms->slack());
  const TimePoint last = calls.clock->now() + timeout;
  Duration pause = kFirstPause;
  while (!progress.is_done()) {
    const auto looked = look(calls, progress);
    if (!looked && !may_pass(looked.error())) return not_awaited(change, looked.error());
    if (progress.is_done()) break;
    const TimePoint now = calls.clock->now();
    if (calls.progress) calls.progress(waiting_sentence(progress.rows(now)));
    const Duration next = std::min(pause_before(progress, pause, now), last - now);
    if (next <= Duration::zero() || !calls.wait(next))
      return not_finished(change, progress.rows(now), looked);
    pause = std::min(pause * 3 / 2, kLongestPause);
  }
  add_rows(progress.rows(calls.clock->now()), answer);
  answer.notes.push_back(
      fmt::format("other hosts have no part of {}, and so none of its keys", change.tenant.value));
  return {};
}

}  // namespace leasehold::cell
