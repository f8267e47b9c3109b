// `brokerctl keys create|update|revoke`: API keys authorize HTTP clients to act for a tenant.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>

#include "broker/decide/deciders.hpp"
#include "broker/decide/lease/record.hpp"
#include "broker/decide/lease/retention.hpp"
#include "broker/decide/lease/revoke.hpp"
#include "broker/decide/tenant/cell.hpp"
#include "broker/decide/tenant/keys.hpp"
#include "broker/decide/tenant/quota.hpp"
#include "ipc/control/tokens/api_key.hpp"

namespace leasehold {
namespace {

void record_key_action(Decision& decision, const Caller& caller, const char* action,
                       const ApiKeyId& key) {
  decision.touched.api_keys.push_back(key);
  decision.touched.durable = true;
  record_operator_action(decision,
                         {.uid = caller.uid, .action = action, .object = "key:" + key.value});
}

std::unexpected<Error> unknown_key(const ApiKeyId& key) {
  return fail(Errc::BadRequest, fmt::format("no key {}; `brokerctl keys` lists all", key.value));
}

/// Sends the workers of the key's tenant their quotas again.
void touch_tenant_of(Decision& decision, const ApiKeyId& key) {
  const journal::ApiKeyRow* row = decision.state.api_keys.find(key);
  if (row != nullptr) decision.touched.usage.push_back(row->tenant);
}

std::vector<LeaseId> end_leases_of(Decision& decision, const ApiKeyId& key) {
  State& state = decision.state;
  std::vector<LeaseId> leases = open_leases_where(state, [&](const LeaseRecord& record) {
    return record.api_key == key && record.is(LeaseState::Live);
  });
  revoke_leases(decision, leases, RevokeReason::PolicyChanged);
  end_retention(decision, retained_where(state, [&](const LeaseRecord& record) {
                  return record.api_key == key;
                }));
  return leases;
}

/// A limit above the tenant's has no effect, so it is a mistake.
template <class Number>
Result<void> check_limit(const char* field, std::optional<Number> of_key,
                         std::optional<Number> of_tenant, const TenantId& tenant) {
  if (!of_key || !of_tenant || *of_key <= *of_tenant) return {};
  return fail(Errc::BadRequest,
              fmt::format("{} is {}, but tenant {} has {}; give the key at most that, or raise the "
                          "tenant's with `brokerctl tenants admit`",
                          field, *of_key, tenant.value, *of_tenant));
}

/// Checks the values that a caller gives a key.
Result<void> check_key(const Decision& decision, const journal::ApiKeyRow& key) {
  const State& state = decision.state;
  if (is_expired(key, state.wall.unix_ms(decision.now))) {
    return fail(Errc::BadRequest,
                fmt::format("expires_unix_ms is {} ({:%Y-%m-%dT%H:%M:%SZ}), which has passed; give "
                            "a time in the future",
                            key.expires_unix_ms, fmt::gmtime(key.expires_unix_ms / 1000)));
  }
  const wire::TenantPolicy& policy = state.tenants.find(key.tenant)->policy;
  if (policy.cell) return {};  // the policy is only this host's part of what the cell permits
  const wire::RateLimits& rates = key.limits.rates;
  TRY(check_limit("max_concurrent", key.limits.max_concurrent, std::optional(policy.max_concurrent),
                  key.tenant));
  TRY(check_limit("tokens_per_minute", rates.tokens_per_minute, policy.rates.tokens_per_minute,
                  key.tenant));
  TRY(check_limit("requests_per_minute", rates.requests_per_minute,
                  policy.rates.requests_per_minute, key.tenant));
  return check_limit("tokens_per_day", rates.tokens_per_day, policy.rates.tokens_per_day,
                     key.tenant);
}

/// A cell may have more keys of a tenant than one host serves. ApiKeys checks the keys of other
/// tenants, and refuses a key that it has: the agent must know that it is here, to revoke it later.
Result<void> check_room(const State& state, const journal::ApiKeyRow& key) {
  const bool is_of_cell = state.tenants.find(key.tenant)->policy.cell.has_value();
  const bool is_full = state.api_keys.of(key.tenant).size() >= ApiKeys::kMaxPerTenant;
  if (!is_of_cell || !is_full || state.api_keys.find(key.id) != nullptr) return {};
  return fail(Errc::QuotaConcurrent,
              fmt::format("this host serves {} keys of tenant {}, the most at a time; use another "
                          "host, or revoke one with `brokerctl cell keys revoke`",
                          ApiKeys::kMaxPerTenant, key.tenant.value));
}

void remove_limit(wire::KeyLimits& limits, std::string_view name) {
  if (name == "max_concurrent") limits.max_concurrent.reset();
  if (name == "tokens_per_minute") limits.rates.tokens_per_minute.reset();
  if (name == "requests_per_minute") limits.rates.requests_per_minute.reset();
  if (name == "tokens_per_day") limits.rates.tokens_per_day.reset();
}

}  // namespace

CallResult decide_call(Decision& decision, const Caller& caller, const wire::KeyCreate& create) {
  State& state = decision.state;
  if (state.tenants.find(create.tenant) == nullptr) {
    return fail(
        Errc::UnknownTenant,
        fmt::format("no tenant {}; admit it with `brokerctl tenants admit`", create.tenant.value));
  }
  TRY(require_owner(state, caller, *state.tenants.find(create.tenant)));
  const ApiKeyId id = api_key_id(create.hash);
  const journal::ApiKeyRow key{.id = id,
                               .tenant = create.tenant,
                               .hash = create.hash,
                               .name = create.name,
                               .created_unix_ms = state.wall.unix_ms(decision.now),
                               .expires_unix_ms = create.expires_unix_ms.value_or(0),
                               .limits = create.limits};
  TRY(check_key(decision, key));
  TRY(check_room(state, key));
  TRY(state.api_keys.add(key, decision.now));
  decision.touched.usage.push_back(create.tenant);
  state.api_keys.await_write(caller.call, {.id = id, .creator_uid = caller.uid});
  record_key_action(decision, caller, "key_create", id);
  decision.add(effect::ReplyWhenJournaled{caller.call, Answer{}});
  return std::nullopt;
}

/// The changed limits are checked, and those that stay are not, because the tenant's may have been
/// lowered since.
CallResult decide_call(Decision& decision, const Caller& caller, const wire::KeyUpdate& update) {
  State& state = decision.state;
  const journal::ApiKeyRow* known = state.api_keys.find(update.key);
  if (known == nullptr) return unknown_key(update.key);
  TRY(require_owner(state, caller, *state.tenants.find(known->tenant)));
  journal::ApiKeyRow changed = *known;
  changed.limits = update.limits;
  changed.expires_unix_ms = update.expires_unix_ms.value_or(0);
  TRY(check_key(decision, changed));
  changed.limits = known->limits;
  if (update.limits.max_concurrent) changed.limits.max_concurrent = update.limits.max_concurrent;
  apply_changes(changed.limits.rates, update.limits.rates);
  for (const std::string& name : update.removes) remove_limit(changed.limits, name);
  if (!update.expires_unix_ms && !update.never_expires)
    changed.expires_unix_ms = known->expires_unix_ms;
  if (update.name) changed.name = *update.name;
  state.api_keys.update(changed);
  decision.touched.usage.push_back(changed.tenant);
  record_key_action(decision, caller, "key_update", update.key);
  decision.add(effect::ReplyWhenJournaled{
      caller.call, Answer{view_of(*state.api_keys.find(update.key), state.wall, decision.now)}});
  return std::nullopt;
}

/// The lease words are stored before the journal is written: a revocation does not wait for the
/// disk.
CallResult decide_call(Decision& decision, const Caller& caller, const wire::KeyRevoke& revoke) {
  State& state = decision.state;
  if (state.api_keys.find(revoke.key) == nullptr &&
      !state.api_keys.is_revocation_unwritten(revoke.key)) {
    return unknown_key(revoke.key);
  }
  if (const journal::ApiKeyRow* known = state.api_keys.find(revoke.key))
    TRY(require_owner(state, caller, *state.tenants.find(known->tenant)));
  std::vector<LeaseId> leases = end_leases_of(decision, revoke.key);
  touch_tenant_of(decision, revoke.key);
  state.api_keys.revoke(revoke.key);
  record_key_action(decision, caller, "key_revoke", revoke.key);
  decision.add(effect::ReplyWhenJournaled{
      caller.call, Answer{wire::LeasesTouched{.leases = std::move(leases)}}});
  return std::nullopt;
}

/// The caller gets an error and no key, so the key must not exist. The next transaction removes the
/// row; it also writes the operator action of the creation.
std::unexpected<Error> refuse_unwritten_key(Decision& decision, const ApiKeys::Unwritten& key,
                                            const Error& why) {
  end_leases_of(decision, key.id);
  touch_tenant_of(decision, key.id);
  decision.state.api_keys.erase(key.id);
  decision.touched.api_keys.push_back(key.id);
  record_operator_action(decision, {.uid = key.creator_uid,
                                    .action = "key_create",
                                    .object = "key:" + key.id.value,
                                    .reason = "not on disk",
                                    .done = false});
  return fail(why.code, fmt::format("key {} was not created, because it is not on disk: {}, then "
                                    "create another",
                                    key.id.value, why.detail));
}

void forget_keys_of(Decision& decision, const TenantId& tenant) {
  const std::set<ApiKeyId> keys = decision.state.api_keys.of(tenant);
  for (const ApiKeyId& id : keys) {
    decision.state.api_keys.erase(id);
    decision.touched.api_keys.push_back(id);
  }
}

/// Nothing is journaled: the clock shows the next broker, too, that the key has expired.
void expire_keys(Decision& decision) {
  State& state = decision.state;
  for (const ApiKeyId& key : state.api_keys.take_expired(state.wall.unix_ms(decision.now))) {
    const journal::ApiKeyRow& row = *state.api_keys.find(key);
    decision.record(events::KeyExpired{.key = key.value,
                                       .tenant = row.tenant.value,
                                       .name = row.name,
                                       .expires_unix_ms = row.expires_unix_ms});
    end_leases_of(decision, key);
  }
}

/// Quotas that say what is left of the day are sent again, because the day may be another one now.
void decide_event(Decision& decision, const ClockSet& set) {
  State& state = decision.state;
  state.wall.offset = set.offset;
  state.api_keys.expect_all_expiries();
  expire_keys(decision);
  begin_day(decision);
}

/// A batch key lies on a worker's disk, so it is worth less than the key: it serves only a worker
/// process, for memory on that worker that gives way to others.
Result<void> require_own_scavenger(const State& state, const Caller& caller,
                                   const wire::LeaseAcquire& acquire) {
  const bool is_own = std::ranges::any_of(state.workers.all(), [&](const auto& entry) {
    const Worker& worker = entry.second;
    return acquire.worker == worker.name && worker.pid == caller.pid &&
           worker.start_ticks == caller.start_ticks;
  });
  if (acquire.scavenger && is_own) return {};
  return fail(Errc::BadToken,
              "a batch key serves only its worker, for batches; use the API key instead");
}

Result<const Tenant*> tenant_of_acquire(const Decision& decision, const Caller& caller,
                                        const wire::LeaseAcquire& acquire) {
  const State& state = decision.state;
  if (!acquire.api_key) return state.tenants.find_for(acquire.tenant, caller.uid);
  const std::int64_t unix_ms = state.wall.unix_ms(decision.now);
  const bool is_batch = key_of_batch_key(*acquire.api_key).has_value();
  if (is_batch) TRY(require_own_scavenger(state, caller, acquire));
  const journal::ApiKeyRow* key =
      TRY(is_batch ? state.api_keys.verify_batch_key(*acquire.api_key, unix_ms)
                   : state.api_keys.verify(*acquire.api_key, unix_ms));
  if (key->tenant == acquire.tenant) return state.tenants.find(key->tenant);
  return fail(Errc::BadToken, fmt::format("the API key is not one of tenant {}; use its own key",
                                          acquire.tenant.value));
}

ApiKeyId key_of(const wire::LeaseAcquire& acquire) {
  if (!acquire.api_key) return {};
  return key_of_batch_key(*acquire.api_key).value_or(api_key_id(hash_of_api_key(*acquire.api_key)));
}

}  // namespace leasehold
