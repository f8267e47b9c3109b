#include "tools/cell/decide/host_parts.hpp"

namespace leasehold::cell {

HostParts AllParts::of(const PartOwner& owner) const {
  const auto found = by_owner.find(owner);
  return found == by_owner.end() ? HostParts() : found->second;
}

AllParts parts_in(const std::vector<etcd::KeyValue>& ledgers) {
  AllParts parts;
  for (const etcd::KeyValue& entry : ledgers) {
    const auto ledger = read_ledger(entry.key, entry.value);
    if (!ledger) {
      parts.problems.push_back(ledger.error());
      continue;
    }
    for (const Part& part : ledger->parts) {
      if (part.share.is_zero()) continue;
      HostParts& host = parts.by_owner[part.owner];
      ++host.tenants;
      host.requests += part.share.concurrent;
    }
  }
  return parts;
}

}  // namespace leasehold::cell
