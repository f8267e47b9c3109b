#include "tools/gateway/decide/watch_check.hpp"

#include <algorithm>

namespace leasehold::gateway {

bool WatchCheck::is_behind(const HostKeys& read, etcd::Revision newest, const Hosts& hosts) {
  const bool lacks_put = put_ > newest;
  const bool lacks_deletion = std::ranges::any_of(deleted_, [&](const auto& deleted) {
    const auto known = hosts.find(deleted.first);
    return known != hosts.end() && known->second.modified == deleted.second;
  });
  reset();
  note_unreported(read, newest, hosts);
  return lacks_put || lacks_deletion;
}

/// The watch may also be ahead of the read: a host that it has reported since is not a deleted one.
void WatchCheck::note_unreported(const HostKeys& read, etcd::Revision newest, const Hosts& hosts) {
  std::set<cell::HostName> found;
  for (const etcd::KeyValue& entry : read.entries) {
    if (const auto host = keys_.host_in(entry.key)) found.insert(*host);
    if (entry.modified > newest) put_ = std::max(put_, entry.modified);
  }
  for (const auto& [host, seen] : hosts)
    if (!found.contains(host) && seen.modified <= read.revision)
      deleted_.emplace(host, seen.modified);
}

void WatchCheck::reset() {
  put_ = {};
  deleted_.clear();
}

}  // namespace leasehold::gateway
