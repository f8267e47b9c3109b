// `brokerctl keys create|revoke`: API keys authorize HTTP clients to act for a tenant.
#include <fmt/format.h>

#include "broker/decide/deciders.hpp"
#include "broker/decide/lease/record.hpp"
#include "broker/decide/lease/retention.hpp"
#include "broker/decide/lease/revoke.hpp"
#include "broker/decide/tenant/keys.hpp"
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

}  // namespace

CallResult decide_call(Decision& decision, const Caller& caller, const wire::KeyCreate& create) {
  State& state = decision.state;
  if (state.tenants.find(create.tenant) == nullptr) {
    return fail(
        Errc::UnknownTenant,
        fmt::format("no tenant {}; admit it with `brokerctl tenants admit`", create.tenant.value));
  }
  const ApiKeyId id = api_key_id(create.hash);
  TRY(state.api_keys.add({.id = id, .tenant = create.tenant, .hash = create.hash}));
  state.api_keys.await_write(caller.call, {.id = id, .creator_uid = caller.uid});
  record_key_action(decision, caller, "key_create", id);
  decision.add(effect::ReplyWhenJournaled{caller.call, Answer{}});
  return std::nullopt;
}

/// The lease words are stored before the journal is written: a revocation does not wait for the
/// disk.
CallResult decide_call(Decision& decision, const Caller& caller, const wire::KeyRevoke& revoke) {
  State& state = decision.state;
  if (state.api_keys.find(revoke.key) == nullptr &&
      !state.api_keys.is_revocation_unwritten(revoke.key)) {
    return fail(Errc::BadRequest,
                fmt::format("no key {}; `brokerctl keys` lists all", revoke.key.value));
  }
  std::vector<LeaseId> leases = end_leases_of(decision, revoke.key);
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
  for (const ApiKeyId& id : decision.state.api_keys.of(tenant)) {
    decision.state.api_keys.erase(id);
    decision.touched.api_keys.push_back(id);
  }
}

Result<const Tenant*> tenant_of_acquire(const State& state, const Caller& caller,
                                        const wire::LeaseAcquire& acquire) {
  if (!acquire.api_key) return state.tenants.find_for(acquire.tenant, caller.uid);
  const journal::ApiKeyRow* key = TRY(state.api_keys.verify(*acquire.api_key));
  if (key->tenant == acquire.tenant) return state.tenants.find(key->tenant);
  return fail(Errc::BadToken, fmt::format("the API key is not one of tenant {}; use its own key",
                                          acquire.tenant.value));
}

ApiKeyId key_of(const wire::LeaseAcquire& acquire) {
  return acquire.api_key ? api_key_id(hash_of_api_key(*acquire.api_key)) : ApiKeyId{};
}

}  // namespace leasehold
