#include "tools/cell/decide/silent_hosts.hpp"

#include <utility>

namespace leasehold::cell {
namespace {

/// The rates of two clocks differ by at most this share.
constexpr int kRateDifference = 100;

}  // namespace

void SilentHosts::listed(const std::vector<etcd::KeyValue>& entries, TimePoint now) {
  const bool had_gap = contact_ && now - *contact_ > kContactGap;
  contact_ = now;
  std::map<HostName, Seen> earlier = std::exchange(seen_, {});
  for (const etcd::KeyValue& entry : entries) {
    const auto host = keys_.host_in(entry.key);
    if (!host) continue;
    const auto known = earlier.find(*host);
    if (known != earlier.end() && known->second.modified == entry.modified) {
      if (had_gap) known->second.since = now;
      seen_.insert(earlier.extract(known));
    } else {
      seen_.emplace(*host, Seen{entry.modified, now, read_host(entry.key, entry.value)});
    }
  }
}

std::optional<SilentHosts::Silence> SilentHosts::silence_of(const Seen& seen, TimePoint now) const {
  if (!seen.record || seen.record->ttl_ms == 0) return std::nullopt;
  const Duration longest = seen.record->ttl() + slack_;
  const Duration since = now - seen.since;
  return Silence{.since = since, .left = longest + longest / kRateDifference - since};
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
