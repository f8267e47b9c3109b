#include "tools/cell/decide/tenant_view.hpp"

#include "common/expects.hpp"

namespace leasehold::cell {

etcd::Transaction ledger_read(const CellKeys& keys, const TenantId& tenant) {
  return {.conditions = {},
          .success = {etcd::Get{etcd::KeyRange::one(keys.ledger(tenant))},
                      etcd::Get{etcd::KeyRange::one(keys.tenant(tenant))}},
          .failure = {}};
}

Result<TenantView> view_of(const etcd::TransactionReply& reply) {
  expects(reply.found.size() >= 2, "a read of the ledger has its lists");
  TenantView view;
  for (const etcd::KeyValue& entry : reply.found[0]) {
    view.ledger = TRY(read_ledger(entry.key, entry.value));
    view.ledger_modified = entry.modified;
  }
  for (const etcd::KeyValue& entry : reply.found[1]) {
    view.policy = TRY(read_policy(entry.key, entry.value));
    view.policy_modified = entry.modified;
  }
  return view;
}

std::set<HostName> hosts_of(const TenantView& view) {
  std::set<HostName> hosts;
  for (const Part& part : view.ledger.parts) hosts.insert(part.owner.host);
  return hosts;
}

etcd::Transaction members_read(const CellKeys& keys, const TenantView& view) {
  etcd::Transaction read;
  for (const HostName& host : hosts_of(view))
    read.success.emplace_back(etcd::Get{etcd::KeyRange::one(keys.host(host))});
  return read;
}

Incarnations members_in(const CellKeys& keys, const etcd::TransactionReply& reply) {
  Incarnations members;
  for (const auto& entries : reply.found)
    for (const etcd::KeyValue& entry : entries)
      if (const auto host = keys.host_in(entry.key)) members.emplace(*host, entry.created);
  return members;
}

}  // namespace leasehold::cell
