// The broker's calls and replies about adapters.
#include <limits>

#include "broker/decide/core.hpp"
#include "tests/simulation/adapters/adapter_judge.hpp"
#include "tests/simulation/model_broker.hpp"
#include "tests/simulation/model_worker.hpp"

namespace leasehold::simulation {
namespace {

Result<ResolvedAdapter> resolved(const journal::AdapterRow* row, const std::string& adapter) {
  if (row == nullptr) return std::unexpected(unknown_adapter({adapter}));
  return ResolvedAdapter{
      .name = row->id.value,
      .version = row->version,
      .file = row->file,
      .owner = row->tenant.value.empty() ? std::nullopt : std::optional(row->tenant),
      .is_pinned = row->pinned};
}

/// The adapters of the published texts, which the broker does not see meanwhile.
std::map<LeaseId, std::string> hide_text_adapters(State& state) {
  std::map<LeaseId, std::string> hidden;
  for (const LeaseId id : state.leases.open_leases()) {
    LeaseRecord& record = state.leases.at(id);
    if (record.text_adapter()) hidden[id] = std::exchange(record.model, "");
  }
  return hidden;
}

}  // namespace

void Broker::resolve(Connection& from, const TenantId& tenant, const std::string& adapter,
                     ResolveHandler on_reply) {
  deps_.machine.send(
      from, Connection::kServer, [this, &from, tenant, adapter, on_reply = std::move(on_reply)] {
        const auto known = tenant.value.empty() ? std::nullopt : std::optional(tenant);
        const journal::AdapterRow* row = deps_.planted_bugs.adapter_for_another
                                             ? state.adapters.find({adapter})
                                             : state.adapters.find_for(known, {adapter});
        deps_.machine.send(from, Connection::kClient,
                           [on_reply, answer = resolved(row, adapter)] { on_reply(answer); });
      });
}

/// Bugs of the core are planted in what it decides from.
std::vector<Effect> Broker::decide_with_planted_bugs(const Event& event) {
  if (!deps_.planted_bugs.adapter_text_kept || std::holds_alternative<GrantAnswered>(event))
    return decide_with_planted_bugs_of_adapters(event);
  const auto hidden = hide_text_adapters(state);
  std::vector<Effect> effects = decide_with_planted_bugs_of_adapters(event);
  for (const auto& [id, adapter] : hidden) {
    if (state.leases.find_open(id) != nullptr) state.leases.at(id).model = adapter;
  }
  return effects;
}

std::vector<Effect> Broker::decide_with_planted_bugs_of_adapters(const Event& event) {
  const TimePoint now = deps_.machine.clock.now();
  const auto* open = std::get_if<Call<wire::AdapterOpen>>(&event);
  const journal::AdapterRow* row =
      open == nullptr ? nullptr : state.adapters.find(open->message.adapter);
  if (row == nullptr) return decide(state, event, now);
  if (deps_.planted_bugs.adapter_digest_ignored) state.adapters.pin(row->id, open->message.digest);
  leasehold::Tenant* owner = state.tenants.find(row->tenant);
  if (!deps_.planted_bugs.adapter_bytes_ignored || owner == nullptr)
    return decide(state, event, now);
  const std::uint64_t quota =
      std::exchange(owner->policy.max_adapter_bytes, std::numeric_limits<std::uint64_t>::max());
  std::vector<Effect> effects = decide(state, event, now);
  owner->policy.max_adapter_bytes = quota;
  return effects;
}

void Broker::perform(const effect::NotifyAdapters& effect) {
  Connection* const way = connection_to(effect.worker);
  if (way == nullptr) return;
  auto* worker = dynamic_cast<Worker*>(way->ends[Connection::kClient].process);
  deps_.machine.send(*way, Connection::kClient, [worker, notice = effect.notice] {
    std::visit([&](const auto& each) { worker->on_adapters_notice(each); }, notice);
  });
}

void Broker::perform(const effect::SendAdapterOrder& effect) {
  Connection* const way = connection_to(effect.worker);
  if (way == nullptr) violated("an order was given to a worker that is away");
  const auto failed = [call = effect.call](Error error) -> Event {
    return AdapterOrderAnswered{call, error};
  };
  const std::uint64_t number = expect_answer(*way, failed);
  pending_calls_[number].is_order = true;
  if (!way->is_open()) return;  // its closing settles the call
  auto* worker = dynamic_cast<Worker*>(way->ends[Connection::kClient].process);
  deps_.machine.send(*way, Connection::kClient,
                     [worker, effect, number] { worker->on_adapter_order(effect, number); });
}

}  // namespace leasehold::simulation
