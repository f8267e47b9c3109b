#include "tools/cell/decide/tenant_change.hpp"

#include "ipc/control/tokens/api_key.hpp"

namespace leasehold::cell {

etcd::Transaction change_of(const CellKeys& keys, const TenantId& tenant, const CellPolicy& policy,
                            const TenantView& view) {
  etcd::Transaction change{
      .conditions = {etcd::Compare::modified_at(keys.ledger(tenant), view.ledger_modified),
                     etcd::Compare::modified_at(keys.tenant(tenant), view.policy_modified)},
      .success = {etcd::Put{keys.tenant(tenant), text_of(policy)}},
      .failure = {}};
  std::map<std::string, std::string> mails;  // two incarnations of one host have one mail
  for (const Part& part : view.ledger.parts)
    mails[keys.mail(part.owner.host, tenant)] = std::to_string(view.policy_modified.value);
  for (auto& [key, value] : mails) change.success.emplace_back(etcd::Put{key, value});
  return change;
}

etcd::Transaction key_change_of(const CellKeys& keys, const CellKey& key, const TenantView& view) {
  etcd::Transaction change = change_of(keys, key.tenant, view.policy, view);
  change.success.emplace_back(etcd::Put{keys.key(api_key_id(key.hash)), text_of(key)});
  return change;
}

etcd::Transaction revocation_of(const CellKeys& keys, const CellKey& key, const TenantView& view,
                                std::int64_t unix_ms) {
  const ApiKeyId id = api_key_id(key.hash);
  RevokedKey revoked{.tenant = key.tenant, .revoked_unix_ms = unix_ms, .hosts = {}};
  for (const Part& part : view.ledger.parts)
    if (counts(part.owner, view.members)) revoked.hosts.push_back(part.owner);
  etcd::Transaction change = change_of(keys, key.tenant, view.policy, view);
  change.success.emplace_back(etcd::Delete{etcd::KeyRange::one(keys.key(id))});
  change.success.emplace_back(etcd::Put{keys.revoked(id), text_of(revoked)});
  return change;
}

}  // namespace leasehold::cell
