#include "tools/cell/decide/tenant_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "common/expects.hpp"

namespace leasehold::cell {
namespace {

/// A host writes what it has read before, and compares it. So no part is of a later revision, and
/// none that has applied the limits is above them. Lowered limits may be below the sum of the parts
/// for a while.
Result<void> check_parts(std::string_view key, const TenantView& view) {
  for (const Part& part : view.ledger.parts) {
    const std::string owner = name_of(part.owner);
    if (part.owner.incarnation >= view.ledger_modified)
      return wrong_ledger(key, fmt::format("{} did not exist when it was written", owner));
    if (view.policy_modified.value == 0) continue;  // an operator has deleted the tenant
    if (part.as_of > view.policy_modified) {
      return wrong_ledger(key, fmt::format("{} has applied revision {}, but the newest is {}",
                                           owner, part.as_of.value, view.policy_modified.value));
    }
    if (part.as_of == view.policy_modified && !part.share.fits(view.policy.limits)) {
      return wrong_ledger(key, fmt::format("{} has {}, above the tenant's {}", owner,
                                           to_string(part.share), to_string(view.policy.limits)));
    }
  }
  return {};
}

}  // namespace

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
  for (const etcd::KeyValue& entry : reply.found[0]) TRY(check_parts(entry.key, view));
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

etcd::Transaction part_read(const CellKeys& keys, const TenantId& tenant, const HostName& host,
                            const TenantView& last) {
  etcd::Transaction read = ledger_read(keys, tenant);
  read.success.emplace_back(etcd::Get{etcd::KeyRange::one(keys.mail(host, tenant))});
  etcd::Transaction members = members_read(keys, last);
  std::ranges::move(members.success, std::back_inserter(read.success));
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
