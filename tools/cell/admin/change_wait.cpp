#include "tools/cell/admin/change_wait.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/errc.hpp"
#include "tools/cell/admin/views.hpp"
#include "tools/cell/decide/change_progress.hpp"

namespace leasehold::cell {
namespace {

constexpr Duration kLookInterval = std::chrono::milliseconds(25);

/// Reads the ledger and the hosts with a part, and expires those that have stopped.
Result<void> look(const Calls& calls, const TenantChange& change, ChangeProgress& progress) {
  const auto reply = TRY(calls.commit(ledger_read(calls.keys, change.tenant)));
  const TenantView view = TRY(view_of(reply));
  etcd::Transaction read;
  for (const HostName& host : progress.hosts())
    read.success.emplace_back(etcd::Get{etcd::KeyRange::one(calls.keys.host(host))});
  std::vector<etcd::KeyValue> members;
  const auto hosts = TRY(calls.commit(read));
  for (const auto& found : hosts.found) members.insert(members.end(), found.begin(), found.end());
  progress.seen(view.ledger, members, calls.clock->now());
  for (const Expiry& expiry : progress.expired(calls.clock->now()))
    (void)TRY(calls.commit(expiry.transaction));
  return {};
}

/// "h1 applied; h2 cut off: stops by itself in 12 s at the latest".
std::string sentence_of(const std::vector<ChangeProgress::Row>& rows) {
  std::vector<std::string> parts;
  for (const auto& row : rows) parts.push_back(row.owner.host.value + " " + row.why);
  return fmt::format("{}", fmt::join(parts, "; "));
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
  ChangeProgress progress(calls.keys, change.changed, change.before, terms->slack());
  const TimePoint last = calls.clock->now() + timeout;
  while (!progress.is_done()) {
    const auto looked = look(calls, change, progress);
    if (!looked && !may_pass(looked.error())) return not_awaited(change, looked.error());
    if (progress.is_done()) break;
    if (calls.clock->now() < last && calls.wait(kLookInterval)) continue;
    return fail(Errc::TimedOut,
                fmt::format("the change is written, but not every host has applied it: {}; "
                            "`brokerctl cell ledger {}` shows those that are behind",
                            sentence_of(progress.rows(calls.clock->now())), change.tenant.value));
  }
  add_rows(progress.rows(calls.clock->now()), answer);
  return {};
}

}  // namespace leasehold::cell
