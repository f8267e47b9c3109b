// `brokerctl adapters add|remove|load|unload`: the registry, and orders to one worker.
#include "broker/decide/tenant/adapters.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "broker/decide/lease/record.hpp"
#include "broker/decide/lease/revoke.hpp"
#include "broker/decide/worker/choose_worker.hpp"
#include "broker/decide/worker/unavailable.hpp"

namespace leasehold {
namespace {

void record_adapter_action(Decision& decision, const Caller& caller, const char* action,
                           const AdapterName& adapter, const std::string& worker = "") {
  const std::string at = worker.empty() ? "" : "@" + worker;
  record_operator_action(
      decision, {.uid = caller.uid, .action = action, .object = "adapter:" + adapter.value + at});
}

void registry_changed(Decision& decision, const AdapterName& adapter) {
  decision.touched.adapters.push_back(adapter);
  decision.touched.durable = true;
  for (const auto& [id, worker] : decision.state.workers.all())
    notify_of_adapters(decision, worker);
}

/// In the field `model` of a request a model's name comes before an adapter's, so the base model
/// would answer requests for the adapter.
Result<void> require_no_model(const State& state, const AdapterName& name) {
  for (const auto& [id, worker] : state.workers.all()) {
    const bool is_alias = std::ranges::find(worker.aliases, name.value) != worker.aliases.end();
    const bool serves = worker.model == name.value || is_alias;
    if (worker.state == WorkerState::Gone || !serves) continue;
    return fail(Errc::BadRequest, fmt::format("worker {} serves a model under the name {}; choose "
                                              "another name for the adapter",
                                              worker.name, name.value));
  }
  return {};
}

/// Passes an operator's order on; the worker's reply answers the call.
template <class Order>
CallResult pass_order(Decision& decision, const Caller& caller, const char* action, Order order) {
  State& state = decision.state;
  if (state.adapters.find(order.adapter) == nullptr) return not_registered(order.adapter);
  const Worker& worker = *TRY(find_worker(state, order.worker));
  if (worker.resuming) return std::unexpected(worker_reconnecting(worker.name));
  if (worker.state != WorkerState::Ready) {
    return fail(
        Errc::NoModelLoaded,
        fmt::format("worker {} has not loaded its model yet; retry once it is ready", worker.name));
  }
  record_adapter_action(decision, caller, action, order.adapter, order.worker);
  decision.add(effect::SendAdapterOrder{worker.id, caller.call, std::move(order)});
  return std::nullopt;
}

}  // namespace

std::unexpected<Error> not_registered(const AdapterName& adapter) {
  return fail(Errc::UnknownAdapter,
              fmt::format("no adapter {}; `brokerctl adapters` lists all", adapter.value));
}

CallResult decide_call(Decision& decision, const Caller& caller, const wire::AdapterAdd& add) {
  State& state = decision.state;
  if (add.tenant && state.tenants.find(*add.tenant) == nullptr) {
    return fail(
        Errc::UnknownTenant,
        fmt::format("no tenant {}; admit it with `brokerctl tenants admit`", add.tenant->value));
  }
  TRY(require_no_model(state, add.adapter));
  const std::uint32_t version = TRY(state.adapters.add({.id = add.adapter,
                                                        .tenant = add.tenant.value_or(TenantId{}),
                                                        .file = add.file,
                                                        .pinned = add.pinned}));
  registry_changed(decision, add.adapter);
  record_adapter_action(decision, caller, "adapter_add", add.adapter);
  decision.add(
      effect::ReplyWhenJournaled{caller.call, Answer{wire::AdapterAdded{.version = version}}});
  return std::nullopt;
}

/// Texts that run keep the version; its workers close it after the last one.
CallResult decide_call(Decision& decision, const Caller& caller,
                       const wire::AdapterRemove& remove) {
  if (decision.state.adapters.find(remove.adapter) == nullptr)
    return not_registered(remove.adapter);
  decision.state.adapters.remove(remove.adapter);
  registry_changed(decision, remove.adapter);
  record_adapter_action(decision, caller, "adapter_remove", remove.adapter);
  decision.add(effect::ReplyWhenJournaled{caller.call, Answer{}});
  return std::nullopt;
}

CallResult decide_call(Decision& decision, const Caller& caller, const wire::AdapterLoad& load) {
  wire::AdapterLoad order = load;
  const journal::AdapterRow* adapter = decision.state.adapters.find(load.adapter);
  order.tenant.reset();
  if (adapter != nullptr && !adapter->tenant.value.empty()) order.tenant = adapter->tenant;
  return pass_order(decision, caller, "adapter_load", std::move(order));
}

CallResult decide_call(Decision& decision, const Caller& caller,
                       const wire::AdapterUnload& unload) {
  return pass_order(decision, caller, "adapter_unload", unload);
}

void decide_event(Decision& decision, const AdapterOrderAnswered& answered) {
  if (answered.refused) return decision.reply(answered.call, std::unexpected(*answered.refused));
  decision.reply(answered.call, Answer{});
}

void forget_adapters_of(Decision& decision, const TenantId& tenant) {
  State& state = decision.state;
  for (const AdapterName& adapter : state.adapters.of(tenant)) {
    state.adapters.remove(adapter);
    registry_changed(decision, adapter);
  }
  revoke_leases(decision,
                open_leases_where(state,
                                  [&](const LeaseRecord& record) {
                                    return record.scope == wire::LeaseScope::Adapter &&
                                           record.tenant == tenant;
                                  }),
                RevokeReason::PolicyChanged);
}

Result<std::vector<LeaseId>> leases_of_adapter(State& state, const AdapterName& adapter,
                                               const std::optional<TenantId>& owner) {
  std::vector<LeaseId> leases = open_leases_where(state, [&](const LeaseRecord& record) {
    const bool is_of = record.adapter() == adapter || record.text_adapter() == adapter;
    return is_of && record.is(LeaseState::Live) && (!owner || record.tenant == *owner);
  });
  const journal::AdapterRow* known = state.adapters.find(adapter);
  const bool is_known = known != nullptr && (!owner || known->tenant == *owner);
  if (leases.empty() && !is_known) return not_registered(adapter);
  return leases;
}

Result<void> require_no_adapter(const State& state, const wire::WorkerReady& ready) {
  std::vector<std::string> names = ready.aliases;
  names.push_back(ready.model);
  for (const std::string& name : names) {
    if (state.adapters.find({name}) == nullptr) continue;
    return fail(Errc::BadRequest, fmt::format("the worker serves a model under the name {}, which "
                                              "is an adapter's; start it with --name-as, or remove "
                                              "the adapter",
                                              name));
  }
  return {};
}

void notify_of_adapters(Decision& decision, const Worker& worker) {
  const bool serves = worker.state == WorkerState::Ready && worker.socket_open;
  if (serves) decision.add(effect::NotifyAdapters{worker.id});
}

}  // namespace leasehold
