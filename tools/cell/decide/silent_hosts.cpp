#include "tools/cell/decide/silent_hosts.hpp"

#include <algorithm>
#include <utility>

namespace leasehold::cell {
namespace {

/// The rates of two clocks differ by at most this share.
constexpr int kRateDifference = 100;

SilentHosts::Seen seen_at(TimePoint now, const etcd::KeyValue& entry) {
  return {.incarnation = entry.created,
          .modified = entry.modified,
          .since = now,
          .record = read_host(entry.key, entry.value)};
}

/// True if two beats of one host differ in nothing that an observer of the set acts on.
bool is_alike(const SilentHosts::Seen& a, const SilentHosts::Seen& b) {
  if (a.incarnation != b.incarnation || a.record.has_value() != b.record.has_value()) return false;
  return !a.record ||
         (a.record->doors == b.record->doors && a.record->is_draining == b.record->is_draining);
}

}  // namespace

Duration longest_silence(const HostRecord& record, Duration slack) {
  const Duration longest = record.ttl() + slack;
  return longest + longest / kRateDifference;
}

void SilentHosts::listed(const std::vector<etcd::KeyValue>& entries, TimePoint now) {
  contacted(now);
  std::map<HostName, Seen> earlier = std::exchange(seen_, {});
  for (const etcd::KeyValue& entry : entries) {
    const auto host = keys_.host_in(entry.key);
    if (!host) continue;
    const auto known = earlier.find(*host);
    if (known != earlier.end() && known->second.modified == entry.modified) {
      seen_.insert(earlier.extract(known));
    } else {
      seen_.emplace(*host, seen_at(now, entry));
    }
  }
}

bool SilentHosts::changed(const etcd::WatchEvent& event, TimePoint now) {
  const auto host = keys_.host_in(event.entry.key);
  if (!host) return false;
  if (event.is_deleted) return seen_.erase(*host) > 0;
  Seen seen = seen_at(now, event.entry);
  const auto known = seen_.find(*host);
  const bool is_more = known == seen_.end() || !is_alike(known->second, seen);
  seen_.insert_or_assign(*host, std::move(seen));
  return is_more;
}

void SilentHosts::contacted(TimePoint now) {
  const bool had_gap = contact_ && now - *contact_ > kContactGap;
  contact_ = now;
  if (!had_gap) return;
  for (auto& [host, seen] : seen_) seen.since = now;
}

void SilentHosts::refused(const HostName& host, TimePoint now) {
  if (const auto found = seen_.find(host); found != seen_.end()) found->second.since = now;
}

std::optional<SilentHosts::Silence> SilentHosts::silence_of(const Seen& seen, TimePoint now) const {
  if (!seen.record || seen.record->ttl_ms == 0) return std::nullopt;
  const Duration since = now - seen.since;
  return Silence{.since = since, .left = longest_silence(*seen.record, slack_) - since};
}

std::optional<SilentHosts::Silence> SilentHosts::silence_of(const HostName& host,
                                                            TimePoint now) const {
  const auto found = seen_.find(host);
  return found == seen_.end() ? std::nullopt : silence_of(found->second, now);
}

std::vector<Expiry> SilentHosts::expired(TimePoint now) const {
  std::vector<Expiry> all;
  for (const auto& [host, seen] : seen_) {
    const auto silence = silence_of(seen, now);
    if (!silence || silence->left >= Duration::zero()) continue;
    const std::string key = keys_.host(host);
    all.push_back({.host = host,
                   .transaction = {.conditions = {etcd::Compare::modified_at(key, seen.modified)},
                                   .success = {etcd::Delete{etcd::KeyRange::one(key)}},
                                   .failure = {}}});
  }
  return all;
}

std::vector<Error> SilentHosts::problems() const {
  std::vector<Error> all;
  for (const auto& [host, seen] : seen_)
    if (!seen.record) all.push_back(seen.record.error());
  return all;
}

}  // namespace leasehold::cell
