#include "tools/cell/decide/change_progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <set>

namespace leasehold::cell {
namespace {

/// A host beats every third of its TTL. One that has missed this share of it is cut off or frozen.
constexpr int kSilentShare = 2;
constexpr std::size_t kLedgerLists = 2;  // of ledger_read, before the hosts

std::string seconds(Duration time) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  return fmt::format("{}.{} s", ms / 1000, ms % 1000 / 100);
}

/// Never less than the time.
std::int64_t whole_seconds(Duration time) {
  return std::max<std::int64_t>(0, std::chrono::ceil<std::chrono::seconds>(time).count());
}

}  // namespace

ChangeProgress::ChangeProgress(CellKeys keys, TenantId tenant, etcd::Revision changed,
                               const TenantView& before, Duration slack)
    : keys_(keys), tenant_(std::move(tenant)), changed_(changed), silent_(std::move(keys), slack) {
  for (const Part& part : before.ledger.parts) {
    Host& host = hosts_[part.owner];
    host.was_member = counts(part.owner, before.members);
    if (!host.was_member) host.state = State::Void;
  }
}

etcd::Transaction ChangeProgress::next_read() const {
  etcd::Transaction read = ledger_read(keys_, tenant_);
  for (const HostName& host : awaited())
    read.success.emplace_back(etcd::Get{etcd::KeyRange::one(keys_.host(host))});
  return read;
}

Result<void> ChangeProgress::replied(const etcd::TransactionReply& reply, TimePoint now) {
  const TenantView view = TRY(view_of(reply));
  std::vector<etcd::KeyValue> hosts;
  for (const auto& entries : reply.found | std::views::drop(kLedgerLists))
    hosts.insert(hosts.end(), entries.begin(), entries.end());
  seen(view.ledger, hosts, now);
  return {};
}

void ChangeProgress::seen(const Ledger& ledger, const std::vector<etcd::KeyValue>& hosts,
                          TimePoint now) {
  for (auto& [owner, host] : hosts_) {
    const auto silence = silent_.silence_of(owner.host, now);
    if (host.state == State::Waiting && silence) host.silence = silence->since;
  }
  silent_.listed(hosts, now);
  Incarnations members;
  for (const etcd::KeyValue& entry : hosts)
    if (const auto host = keys_.host_in(entry.key)) members.emplace(*host, entry.created);
  for (auto& [owner, host] : hosts_) {
    if (host.state != State::Waiting) continue;
    const Part* part = ledger.find(owner);
    if (!counts(owner, members)) {
      host.state = State::Void;
    } else if (part == nullptr) {
      host.state = State::Returned;
    } else if (part->as_of >= changed_) {
      host.state = State::Applied;
    }
    host.since = now;
  }
}

bool ChangeProgress::is_done() const {
  return std::ranges::none_of(hosts_,
                              [](const auto& each) { return each.second.state == State::Waiting; });
}

std::vector<Expiry> ChangeProgress::expired(TimePoint now) const {
  std::vector<Expiry> all = silent_.expired(now);
  std::erase_if(all, [&](const Expiry& expiry) {
    return std::ranges::none_of(hosts_, [&](const auto& each) {
      return each.first.host == expiry.host && each.second.state == State::Waiting;
    });
  });
  return all;
}

std::optional<Duration> ChangeProgress::time_to_expiry(TimePoint now) const {
  std::optional<Duration> least;
  for (const HostName& host : awaited())
    if (const auto silence = silent_.silence_of(host, now))
      least = std::min(least.value_or(silence->left), silence->left);
  return least;
}

std::string ChangeProgress::why(const PartOwner& owner, const Host& host, TimePoint now) const {
  switch (host.state) {
    case State::Applied:
      return "applied";
    case State::Returned:
      return "returned its part";
    case State::Void:
      if (!host.was_member) return "has stopped: it was expired before";
      return fmt::format("expired {} ago, after {} without a beat: it has stopped",
                         seconds(now - host.since), seconds(host.silence));
    case State::Waiting:
      break;
  }
  const auto silence = silent_.silence_of(owner.host, now);
  if (!silence) return "has not applied it, and never stops by itself";
  const std::int64_t left = whole_seconds(silence->left);
  if (silence->since < (silence->since + silence->left) / kSilentShare)
    return fmt::format("has not applied it yet: without a beat it stops in {} s", left);
  return fmt::format("cut off: stops by itself in {} s at the latest", left);
}

std::vector<ChangeProgress::Row> ChangeProgress::rows(TimePoint now) const {
  std::vector<Row> all;
  for (const auto& [owner, host] : hosts_)
    all.push_back({.owner = owner, .state = host.state, .why = why(owner, host, now)});
  return all;
}

std::vector<HostName> ChangeProgress::awaited() const {
  std::set<HostName> names;
  for (const auto& [owner, host] : hosts_)
    if (host.state == State::Waiting) names.insert(owner.host);
  return {names.begin(), names.end()};
}

}  // namespace leasehold::cell
