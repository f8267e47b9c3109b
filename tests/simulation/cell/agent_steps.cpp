// The steps of one tenant, in the order of TenantSteps of the program.
#include <algorithm>
#include <utility>

#include "tests/simulation/cell/host_agent.hpp"
#include "tools/cell/decide/broker_part.hpp"

namespace leasehold::cell::simulation {

void HostAgent::wake(std::size_t tenant) {
  HostedTenant& hosted = *tenants_[tenant];
  hosted.is_due_again = true;
  if (std::exchange(hosted.is_busy, true)) return;
  // Not at once: the caller may go through all tenants, and a step may forget one.
  network_.at(Duration::zero(), &machine_, in_this_life([this, tenant] { drive(tenant); }));
}

void HostAgent::drive(std::size_t tenant) {
  HostedTenant& hosted = *tenants_[tenant];
  hosted.is_due_again = false;
  if (!owner_ || !is_attached_) return finish(tenant, false);
  hosted.step_owner = owner_;
  advance(tenant);
}

void HostAgent::finish(std::size_t tenant, bool is_done) {
  HostedTenant& hosted = *tenants_[tenant];
  if (!is_done) answer(hosted, TextEnd::Refused);
  if (is_done && hosted.is_due_again) return drive(tenant);
  hosted.is_busy = false;
  const bool is_known = hosted.is_resumed && !hosted.is_at_broker;
  if (is_known && hosted.part.is_returned() && hosted.asked.empty())
    return tenants_[tenant].reset();
  hosted.demand.seen(requests_of(hosted), now());
  hosted.schedule.stepped(hosted.part, !is_done || !hosted.is_resumed, now(), network_.random()());
  plan_step(tenant);
}

void HostAgent::plan_step(std::size_t tenant) {
  HostedTenant& hosted = *tenants_[tenant];
  const std::uint64_t timer = ++timers_;
  hosted.timer = timer;
  const auto due = hosted.schedule.due_at(hosted.demand);
  if (!due) return;
  network_.at(std::max<Duration>(Duration::zero(), *due - now()), &machine_,
              in_this_life([this, tenant, timer] {
                if (tenants_[tenant] && tenants_[tenant]->timer == timer) begin_step(tenant);
              }));
}

void HostAgent::begin_step(std::size_t tenant) {
  HostedTenant& hosted = *tenants_[tenant];
  hosted.demand.seen(requests_of(hosted), now());
  if (hosted.schedule.begin_step(now())) hosted.part.look_again();
  wake(tenant);
}

void HostAgent::advance(std::size_t tenant) {
  HostedTenant& hosted = *tenants_[tenant];
  if (!hosted.is_resumed) return resume(tenant);
  hosted.part.wants(hosted.demand.share());
  if (hosted.part.limit().revision != hosted.sent) return send_limit(tenant);
  if (auto call = hosted.part.next_call()) return call_etcd(tenant, *std::move(call));
  if (hosted.part.limits().is_zero()) answer(hosted, TextEnd::Unknown);
  if (can_run(hosted.part.limit().share)) answer(hosted, std::nullopt);
  const bool is_unused = hosted.part.is_returned() && hosted.asked.empty();
  if (is_unused && hosted.is_at_broker && !hosted.is_due_again) return remove(tenant);
  finish(tenant, true);
}

// ---------------------------------------------------------------- the broker

void HostAgent::resume(std::size_t tenant) {
  ask_views(in_this_life([this, tenant](const Result<std::vector<wire::TenantView>>& views) {
    if (!views) return finish(tenant, false);
    HostedTenant& hosted = *tenants_[tenant];
    if (hosted.step_owner == owner_) resumed(hosted, *views);
    if (!hosted.is_resumed) return finish(tenant, true);
    confirm(hosted);  // what came while this call was on its way
    advance(tenant);
  }));
}

void HostAgent::resumed(HostedTenant& hosted, const std::vector<wire::TenantView>& views) {
  const TenantId id = terms_.tenants[static_cast<std::size_t>(
      std::ranges::find_if(tenants_, [&](const auto& each) { return each.get() == &hosted; }) -
      tenants_.begin())];
  const auto view =
      std::ranges::find(views, id, [](const wire::TenantView& each) { return each.policy.tenant; });
  const PartOwner owner = *hosted.step_owner;
  if (view == views.end()) {
    hosted.part.resumed(owner, {}, {});
  } else {
    const auto may_run = may_run_at_resume(*view, owner.incarnation);
    if (!may_run) return;
    hosted.part.resumed(owner, limit_in(*view, owner.incarnation), *may_run);
  }
  hosted.sent = hosted.part.limit().revision;
  hosted.is_at_broker = view != views.end();
  hosted.is_resumed = true;
}

/// A limit of zero needs no message for a tenant that the broker does not have.
void HostAgent::send_limit(std::size_t tenant) {
  HostedTenant& hosted = *tenants_[tenant];
  BrokerLimit limit = hosted.part.limit();
  if (!hosted.is_at_broker && !can_run(limit.share)) {
    hosted.sent = limit.revision;
    hosted.part.confirmed(limit.revision, {});
    return advance(tenant);
  }
  hosted.is_at_broker = true;
  if (network_.has(PlantedBug::BrokerBeforeLedger))
    limit.share = greater(limit.share, smaller(hosted.demand.share(), hosted.part.limits()));
  wire::CellAdmit admission =
      admission_of(terms_.cell, terms_.tenants[tenant], *hosted.step_owner, limit);
  admission.incarnation = broker_incarnation(*hosted.step_owner);
  ask(
      [this, admission](HostBroker& core, TimePoint now, OnAnswer done) {
        core.call(connection(), admission, now, std::move(done));
      },
      in_this_life([this, tenant, revision = limit.revision](const Result<Answer>& answer) {
        if (!answer) return finish(tenant, false);
        HostedTenant& sent = *tenants_[tenant];
        const auto& part = std::get<wire::CellPart>(answer->body);
        if (part.revision != revision) {
          sent.is_resumed = false;
          return finish(tenant, false);
        }
        network_.count(Counted::Admissions);
        sent.sent = revision;
        advance(tenant);
      }));
}

void HostAgent::remove(std::size_t tenant) {
  ask(
      [this, tenant](HostBroker& core, TimePoint now, OnAnswer done) {
        core.call(connection(),
                  wire::TenantRemove{.tenant = terms_.tenants[tenant], .revoke = true}, now,
                  std::move(done));
      },
      in_this_life([this, tenant](const Result<Answer>& answer) {
        const bool is_gone = answer || answer.error().code == Errc::UnknownTenant;
        if (is_gone) tenants_[tenant]->is_at_broker = false;
        finish(tenant, is_gone);
      }));
}

// ---------------------------------------------------------------- etcd

/// Planted: a replacement counts for nothing after the replaced part has gone, so this host takes
/// as much more.
void count_for_ever(const CellKeys& keys, const ModelledEtcd& etcd, const HostName& host,
                    etcd::Put& put) {
  Incarnations members;
  for (const etcd::KeyValue& entry : etcd.read(keys.hosts()))
    members.emplace(*keys.host_in(entry.key), entry.created);
  Ledger ledger = read_ledger(put.key, put.value).value();
  Share hidden;
  for (const Part& part : ledger.parts)
    if (part.owner.host != host && part.instead_of && !counts(*part.instead_of, members))
      hidden = hidden + part.share;
  for (Part& part : ledger.parts)
    if (part.owner.host == host)
      part.share = greater(part.share, smaller(part.demand, part.share + hidden));
  put.value = text_of(ledger);
}

void HostAgent::plant_in(std::size_t tenant, etcd::Transaction& write) const {
  if (network_.has(PlantedBug::VoidWithoutIncarnation))
    std::erase_if(write.conditions, [](const auto& each) { return !each.is_equal; });
  if (!network_.has(PlantedBug::InsteadOfForEver)) return;
  const std::string key = terms_.keys.ledger(terms_.tenants[tenant]);
  for (etcd::Operation& operation : write.success) {
    auto* const put = std::get_if<etcd::Put>(&operation);
    if (put && put->key == key)
      count_for_ever(terms_.keys, network_.etcd(), HostName{machine_.name}, *put);
  }
}

void HostAgent::call_etcd(std::size_t tenant, etcd::Transaction call) {
  const bool is_write = !call.conditions.empty();
  if (is_write) {
    for (const auto& each : call.conditions) network_.count(Counted::VoidParts, !each.is_equal);
    plant_in(tenant, call);
  }
  network_.call(machine_, std::move(call),
                in_this_life([this, tenant](const etcd::TransactionReply& reply) {
                  etcd::TransactionReply seen = reply;
                  // A planted reader takes a stale read for the truth.
                  if (network_.has(PlantedBug::VoidWithoutIncarnation) && network_.one_in(4))
                    for (auto& entries : seen.found)
                      if (!entries.empty() && terms_.keys.host_in(entries.front().key))
                        entries.clear();
                  if (tenants_[tenant]->part.replied(seen)) return advance(tenant);
                  finish(tenant, false);
                }),
                in_this_life([this, tenant] {
                  tenants_[tenant]->part.failed();
                  finish(tenant, false);
                }));
}

}  // namespace leasehold::cell::simulation
