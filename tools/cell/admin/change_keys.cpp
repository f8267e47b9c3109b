// The commands that change API keys of a cell.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/errc.hpp"
#include "ipc/control/tokens/api_key.hpp"
#include "tools/cell/admin/change_tenant.hpp"
#include "tools/cell/admin/views.hpp"
#include "tools/cell/decide/tenant_change.hpp"

namespace leasehold::cell {
namespace {

/// A command that was interrupted is repeated within this time.
constexpr std::chrono::milliseconds kKeepRevoked = std::chrono::days(7);

std::unexpected<Error> unknown_key(const ApiKeyId& key) {
  return fail(Errc::BadRequest,
              fmt::format("the cell has no key {}; see `brokerctl cell keys`", key.value));
}

/// A limit above the tenant's has no effect, so it is a mistake.
Result<void> check_limit(const char* field, std::optional<std::uint32_t> of_key,
                         std::uint32_t of_tenant) {
  if (!of_key || *of_key <= of_tenant) return {};
  return fail(Errc::BadRequest,
              fmt::format("{} is {}, but the tenant has {}; give the key at most that, or raise "
                          "the tenant's with `brokerctl cell tenants admit`",
                          field, *of_key, of_tenant));
}

/// Checks what the command sets; what stays may be above limits that were lowered since.
Result<void> check_change(const KeyChange& change, const CellPolicy& policy, std::int64_t unix_ms) {
  if (change.expires_unix_ms && *change.expires_unix_ms <= unix_ms) {
    return fail(Errc::BadRequest, fmt::format("the expiry {} has passed; give a time in the future",
                                              cli::utc_text(*change.expires_unix_ms / 1000)));
  }
  TRY(check_limit("max_concurrent", change.limits.max_concurrent, policy.limits.concurrent));
  return check_limit("tokens_per_minute", change.limits.rates.tokens_per_minute,
                     policy.limits.tokens_per_minute);
}

void set_limit(std::optional<std::uint32_t>& limit, const std::optional<std::uint32_t>& value,
               const char* name, const std::vector<std::string>& removes) {
  if (std::ranges::find(removes, name) != removes.end()) limit.reset();
  if (value) limit = value;
}

CellKey changed(CellKey key, const KeyChange& change) {
  if (change.name) key.name = *change.name;
  if (change.never_expires) key.expires_unix_ms.reset();
  if (change.expires_unix_ms) key.expires_unix_ms = change.expires_unix_ms;
  wire::KeyLimits& limits = key.limits;
  const auto& [concurrent, rates] = change.limits;
  set_limit(limits.max_concurrent, concurrent, "max_concurrent", change.removes);
  set_limit(limits.rates.tokens_per_minute, rates.tokens_per_minute, "tokens_per_minute",
            change.removes);
  set_limit(limits.rates.requests_per_minute, rates.requests_per_minute, "requests_per_minute",
            change.removes);
  return key;
}

using MakeKeyChange = std::function<Result<etcd::Transaction>(const CellKey&, const TenantView&)>;

/// Commits what `make` returns for the key and its tenant as they are. Errors: BadRequest for an
/// unknown key; those of change_tenant.
Result<TenantChange> change_key(const Calls& calls, const ApiKeyId& key,
                                const MakeKeyChange& make) {
  const auto read = [&]() -> Result<std::pair<etcd::Revision, CellKey>> {
    const auto entry = TRY(read_one(calls, calls.keys.key(key)));
    if (!entry) return unknown_key(key);
    return std::pair(entry->modified, TRY(read_key(entry->key, entry->value)));
  };
  const TenantId tenant = TRY(read()).second.tenant;
  return change_tenant(calls, tenant, [&](const TenantView& view) -> Result<etcd::Transaction> {
    const auto [modified, record] = TRY(read());
    etcd::Transaction change = TRY(make(record, view));
    change.conditions.push_back(etcd::Compare::modified_at(calls.keys.key(key), modified));
    return change;
  });
}

/// Deletes some records of keys that were revoked long ago, so that they do not accumulate: an
/// error changes nothing that matters.
void forget_revoked(const Calls& calls, const ApiKeyId& key) {
  const auto listed = calls.list(calls.keys.revoked_beside(key));
  if (!listed) return;
  etcd::Transaction forget;
  for (const etcd::KeyValue& entry : listed->entries) {
    const auto record = read_revoked(entry.key, entry.value);
    const bool is_old = !record || calls.unix_ms - record->revoked_unix_ms > kKeepRevoked.count();
    if (is_old && forget.success.size() < etcd::Transaction::kMaxOperations)
      forget.success.emplace_back(etcd::Delete{etcd::KeyRange::one(entry.key)});
  }
  if (!forget.success.empty()) (void)calls.commit(forget);
}

/// The revocation of a key that is not there any more, with the hosts that it concerned.
Result<TenantChange> earlier_revocation(const Calls& calls, const ApiKeyId& key) {
  const auto entry = TRY(read_one(calls, calls.keys.revoked(key)));
  if (!entry) return unknown_key(key);
  const RevokedKey record = TRY(read_revoked(entry->key, entry->value));
  TenantView before;
  for (const PartOwner& owner : record.hosts)
    before.ledger.parts.push_back(
        {.owner = owner, .share = {}, .demand = {}, .as_of = {}, .instead_of = {}});
  const etcd::Transaction members = members_read(calls.keys, before);
  if (!members.success.empty()) before.members = members_in(calls.keys, TRY(calls.commit(members)));
  return TenantChange{.tenant = record.tenant, .before = before, .changed = entry->modified};
}

}  // namespace

Result<Answer> create_key(const Calls& calls, const TenantId& tenant, const KeyChange& values,
                          const std::string& api_key) {
  const auto policy = TRY(read_one(calls, calls.keys.tenant(tenant)));
  if (!policy) return unknown_tenant(tenant);
  const CellPolicy limits = TRY(read_policy(policy->key, policy->value));
  TRY(check_change(values, limits, calls.unix_ms));
  const CellKey record = changed({.hash = hash_of_api_key(api_key),
                                  .tenant = tenant,
                                  .name = {},
                                  .created_unix_ms = calls.unix_ms,
                                  .expires_unix_ms = {},
                                  .limits = {}},
                                 values);
  const ApiKeyId id = api_key_id(record.hash);
  const etcd::Transaction create{
      .conditions = {etcd::Compare::created_at(policy->key, policy->created)},
      .success = {etcd::Put{calls.keys.key(id), text_of(record)}},
      .failure = {}};
  const auto created = calls.commit(create);
  if (!created) {
    return fail(
        created.error().code,
        fmt::format("key {} may be valid, but is not shown, because {}; run: brokerctl cell "
                    "keys revoke {}",
                    id.value, created.error().detail, id.value));
  }
  if (!created->succeeded) return unknown_tenant(tenant);
  Answer answer{.table = keys_table({{id, record}}, calls.unix_ms),
                .notes = {},
                .document = json_of(id, record)};
  answer.table.columns.push_back({"API KEY, SHOWN ONCE"});
  answer.table.rows.front().push_back(api_key);
  answer.document["api_key"] = api_key;
  return answer;
}

Result<Answer> update_key(const Calls& calls, const ApiKeyId& key, const KeyChange& change,
                          Wait wait) {
  CellKey record;
  const auto update = [&](const CellKey& old, const TenantView& view) -> Result<etcd::Transaction> {
    TRY(check_change(change, view.policy, calls.unix_ms));
    record = changed(old, change);
    return key_change_of(calls.keys, record, view);
  };
  const TenantChange done = TRY(change_key(calls, key, update));
  return finish(calls,
                {.table = keys_table({{key, record}}, calls.unix_ms),
                 .notes = {},
                 .document = json_of(key, record)},
                done, wait);
}

Result<Answer> revoke_key(const Calls& calls, const ApiKeyId& key, Wait wait) {
  const auto revoke = [&](const CellKey& record, const TenantView& view) {
    return Result<etcd::Transaction>(revocation_of(calls.keys, record, view, calls.unix_ms));
  };
  const bool exists = TRY(read_one(calls, calls.keys.key(key))).has_value();
  if (exists) forget_revoked(calls, key);
  auto change = exists ? change_key(calls, key, revoke) : earlier_revocation(calls, key);
  // Another operator has revoked it meanwhile, or the reply was lost.
  if (!change && exists && !TRY(read_one(calls, calls.keys.key(key))))
    change = earlier_revocation(calls, key);
  return finish(calls, name_answer("KEY REVOKED", "key", key.value), TRY(std::move(change)), wait);
}

}  // namespace leasehold::cell
