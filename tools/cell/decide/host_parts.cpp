#include "tools/cell/decide/host_parts.hpp"

namespace leasehold::cell {

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
      HostParts& host = parts.of[part.owner];
      ++host.tenants;
      host.requests += part.share.concurrent;
    }
  }
  return parts;
}

}  // namespace leasehold::cell
