// The agent of a cell moves the ceiling, and sets this host's part of the limits of tenants.
//
// Invariant: a live lease of a cell's tenant has a deadline, and the deadline is at most the
// ceiling. Workers obey deadlines in shared memory, so these leases end even if broker and agent
// are stopped.
#include "broker/decide/tenant/cell.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "broker/decide/deciders.hpp"
#include "broker/decide/lease/record.hpp"
#include "broker/decide/lease/retention.hpp"
#include "broker/decide/lease/revoke.hpp"
#include "broker/decide/tenant/admit.hpp"
#include "common/expects.hpp"

namespace leasehold {
namespace {

/// Retry interval. A text that waits for its cell goes on within it, once the host is back; few
/// texts of a host wait at the same time.
constexpr std::int64_t kAskAgain_ms = 250;

constexpr Duration kTellOfUse = std::chrono::seconds(1);

/// The deadline of a lease without a ceiling, because a deadline of zero would mean none.
constexpr TimePoint kPassedLongAgo{1};

bool is_of(const Cell& cell, const Tenant& tenant) {
  return tenant.policy.cell && tenant.policy.cell == cell.name;
}

/// Nothing for a tenant that belongs to this host.
std::optional<TimePoint> ceiling_of(const State& state, const Tenant& tenant) {
  if (!tenant.policy.cell) return std::nullopt;
  return is_of(state.cell, tenant) ? state.cell.ceiling : TimePoint{};
}

std::unexpected<Error> not_the_agent(const Tenant& tenant) {
  return fail(Errc::PermissionDenied,
              fmt::format("tenant {} belongs to cell {}, so only its agent changes it here; use "
                          "`brokerctl cell`",
                          tenant.policy.tenant.value, tenant.policy.cell->value));
}

Result<void> require_agent(const State& state, const Caller& caller) {
  const bool is_agent = state.cell.name && state.cell.agent == caller.connection;
  if (is_agent) return {};
  return fail(Errc::PermissionDenied,
              "this connection is not the agent's, or a later agent has attached; call "
              "cell.attach");
}

/// Answers of the workers name the membership.
void tell_workers(Decision& decision) {
  for (const auto& [id, worker] : decision.state.workers.all()) send_admission(decision, worker);
}

/// A new agent reads the parts, and is notified of each change since.
void forget_told(State& state) {
  for (const auto& [id, tenant] : state.tenants.all()) state.tenants.find(id)->told.reset();
}

/// Takes the part away. Requests of the tenant no longer start here.
void void_part(Decision& decision, Tenant& tenant) {
  tenant.part = {.incarnation = decision.state.cell.incarnation};
  wire::TenantPolicy none = tenant.policy;
  none.max_concurrent = none.max_blocks = none.reserved_blocks = 0;
  const auto put = put_policy(decision, none);
  ensures(put.has_value(), "a policy without limits is valid");
}

std::vector<LeaseId> live_leases_where(const State& state, auto matches) {
  std::vector<LeaseId> leases;
  state.leases.for_each_open([&](const LeaseRecord& record) {
    const bool is_live = record.scope == wire::LeaseScope::Tenant && record.is(LeaseState::Live);
    const Tenant* tenant = is_live ? state.tenants.find(record.tenant) : nullptr;
    if (tenant != nullptr && is_of(state.cell, *tenant) && matches(*tenant))
      leases.push_back(record.id());
  });
  return leases;
}

/// Ends what belongs to an earlier membership: another host may have its parts now.
void void_other_parts(Decision& decision) {
  State& state = decision.state;
  const auto is_other = [&](const Tenant& tenant) {
    return tenant.part.incarnation != state.cell.incarnation;
  };
  revoke_leases(decision, live_leases_where(state, is_other), RevokeReason::CellLost);
  std::vector<TenantId> others;
  for (const auto& [id, tenant] : state.tenants.all())
    if (is_of(state.cell, tenant) && is_other(tenant)) others.push_back(id);
  for (const TenantId& id : others) {
    end_retention_of(decision, id);
    void_part(decision, *state.tenants.find(id));
  }
}

void move_deadlines(Decision& decision) {
  State& state = decision.state;
  const std::vector<LeaseId> leases = live_leases_where(state, [](const Tenant&) { return true; });
  if (state.cell.ceiling <= decision.now)
    return void(revoke_leases(decision, leases, RevokeReason::CellLost));
  for (const LeaseId id : leases) {
    LeaseRecord& record = state.leases.at(id);
    const TimePoint before = record.deadline;
    choose_deadline(state, record, record.wanted_deadline);
    if (record.deadline != before) set_deadline(decision, record, record.wanted_deadline);
  }
}

/// The part is new while no worker has a quota of the tenant.
void start_credit(Tenant& tenant, const wire::CellAdmit& admit, TimePoint now) {
  if (!tenant.shares.empty()) return;
  tenant.idle = IdleTime::since(now - std::chrono::milliseconds(admit.first_credit_ms));
  tenant.part_workers.clear();
}

Result<void> check_admission(const State& state, const Caller& caller,
                             const wire::CellAdmit& admit) {
  TRY(require_agent(state, caller));
  if (admit.policy.cell != state.cell.name) {
    return fail(Errc::BadRequest, fmt::format("policy.cell is {}, but the agent is that of cell {}",
                                              admit.policy.cell->value, state.cell.name->value));
  }
  if (admit.incarnation != state.cell.incarnation) {
    return fail(Errc::CellLost,
                fmt::format("the part is of incarnation {}, but this host is a member as {}; take "
                            "a new part",
                            admit.incarnation, state.cell.incarnation));
  }
  const Tenant* known = state.tenants.find(admit.policy.tenant);
  if (known == nullptr || known->policy.cell == state.cell.name) return {};
  return fail(Errc::IllegalTransition,
              fmt::format("tenant {} does not belong to cell {}; remove it from this host with "
                          "`brokerctl tenants remove`, or choose another name",
                          admit.policy.tenant.value, state.cell.name->value));
}

}  // namespace

Result<void> require_owner(const State& state, const Caller& caller, const Tenant& tenant) {
  if (!tenant.policy.cell) return {};
  const bool is_agent = is_of(state.cell, tenant) && state.cell.agent == caller.connection;
  return is_agent ? Result<void>() : not_the_agent(tenant);
}

Result<void> require_local(const Tenant& tenant) {
  return tenant.policy.cell ? not_the_agent(tenant) : Result<void>();
}

Result<void> require_remover(const State& state, const Caller& caller, const Tenant& tenant) {
  const bool has_agent = is_of(state.cell, tenant) && state.cell.agent != ConnectionId{};
  return has_agent ? require_owner(state, caller, tenant) : Result<void>();
}

Result<void> require_ceiling(const Decision& decision, const Tenant& tenant) {
  const auto ceiling = ceiling_of(decision.state, tenant);
  if (!ceiling || *ceiling > decision.now) return {};
  const std::string why =
      *ceiling == TimePoint{}
          ? "no agent has sent a ceiling"
          : fmt::format("the ceiling passed {} ms ago",
                        (decision.now - *ceiling) / std::chrono::milliseconds(1));
  return std::unexpected(Error{
      .code = Errc::CellLost,
      .detail =
          fmt::format("tenant {} belongs to cell {}, and {}; retry in {} ms, or on "
                      "another host",
                      tenant.policy.tenant.value, tenant.policy.cell->value, why, kAskAgain_ms),
      .retry_after_ms = kAskAgain_ms});
}

Result<void> require_part(const Decision& decision, const Tenant& tenant) {
  TRY(require_ceiling(decision, tenant));
  if (tenant.policy.max_concurrent > 0 && tenant.policy.max_blocks > 0) return {};
  return std::unexpected(
      Error{.code = Errc::QuotaConcurrent,
            .detail = fmt::format("this host has no part of the limits of tenant {}; retry in {} "
                                  "ms, or on another host",
                                  tenant.policy.tenant.value, kAskAgain_ms),
            .retry_after_ms = kAskAgain_ms});
}

void choose_deadline(const State& state, LeaseRecord& record, TimePoint wanted) {
  record.wanted_deadline = record.deadline = wanted;
  const Tenant* tenant = state.tenants.find(record.tenant);
  if (tenant == nullptr) return;
  const auto ceiling = ceiling_of(state, *tenant);
  if (ceiling) record.deadline = std::min(wanted, std::max(*ceiling, kPassedLongAgo));
}

void set_deadline(Decision& decision, LeaseRecord& record, TimePoint wanted) {
  choose_deadline(decision.state, record, wanted);
  decision.touch(record.id());
  decision.add(effect::SetDeadline{record.id(), record.deadline});
}

RevokeReason reason_at_deadline(const State& state, const LeaseRecord& record, TimePoint now) {
  const bool drained = record.drain_deadline != TimePoint{} && record.drain_deadline <= now;
  if (drained) return record.drain_reason;
  const Tenant* tenant = state.tenants.find(record.tenant);
  const auto ceiling = tenant == nullptr ? std::nullopt : ceiling_of(state, *tenant);
  return ceiling && *ceiling <= now ? RevokeReason::CellLost : RevokeReason::TtlExpired;
}

wire::CellPart part_of(const State& state, const Tenant& tenant) {
  wire::CellPart part{.incarnation = tenant.part.incarnation,
                      .revision = tenant.part.revision,
                      .uses = tenant.uses};
  for (const auto& [worker, share] : tenant.shares) {
    part.may_run += share.may_run;
    part.demand += share.demand;
    part.confirmed = part.confirmed && share.reachable && share.is_confirmed();
  }
  // After a restart, a worker with live leases has no share until a decision concerns it.
  for (const auto& [worker, holding] : state.leases.index().of(tenant.policy.tenant)) {
    const bool is_known = holding.live == 0 || tenant.shares.contains(worker);
    part.confirmed = part.confirmed && is_known && holding.live == holding.leases;
  }
  return part;
}

/// Requests and blocks within the limits change all the time, and the agent does not need them.
void tell_agent(Decision& decision, const std::set<TenantId>& tenants) {
  State& state = decision.state;
  if (state.cell.agent == ConnectionId{}) return;
  for (const TenantId& id : tenants) {
    Tenant* const tenant = state.tenants.find(id);
    if (tenant == nullptr || !is_of(state.cell, *tenant)) continue;
    const wire::CellPartChanged changed{
        .tenant = id,
        .part = part_of(state, *tenant),
        .blocks_held = static_cast<std::uint32_t>(state.leases.index().charged(id))};
    const ToldPart told{.part = tenant->part,
                        .may_run = std::max(changed.part.may_run, tenant->policy.max_concurrent),
                        .blocks_held = std::max(changed.blocks_held, tenant->policy.max_blocks),
                        .demand = changed.part.demand == 0 ? 0 : std::bit_ceil(changed.part.demand),
                        .confirmed = changed.part.confirmed};
    const bool is_used =
        changed.part.uses != tenant->told_uses && decision.now - tenant->told_at >= kTellOfUse;
    if (tenant->told == told && !is_used) continue;
    tenant->told = told;
    tenant->told_uses = changed.part.uses;
    tenant->told_at = decision.now;
    decision.add(effect::NotifyAgent{state.cell.agent, changed});
  }
}

void forget_agent(State& state, ConnectionId connection) {
  if (state.cell.agent == connection) state.cell.agent = {};
}

CallResult decide_call(Decision& decision, const Caller& caller, const wire::CellAttach& attach) {
  Cell& cell = decision.state.cell;
  if (cell.name != attach.cell) {
    cell = {.name = attach.cell};
    tell_workers(decision);
  }
  cell.agent = caller.connection;
  forget_told(decision.state);
  return Answer{wire::CellAttached{.incarnation = cell.incarnation,
                                   .ceiling_boottime_ns = cell.ceiling.boottime_ns}};
}

CallResult decide_call(Decision& decision, const Caller& caller, const wire::CellCeiling& moved) {
  Cell& cell = decision.state.cell;
  TRY(require_agent(decision.state, caller));
  if (std::exchange(cell.incarnation, moved.incarnation) != moved.incarnation) {
    decision.record(events::CellMembership{.cell = *cell.name, .incarnation = moved.incarnation});
    tell_workers(decision);
  }
  cell.ceiling = {moved.ceiling_boottime_ns};
  cell.heard_at = decision.now;
  void_other_parts(decision);
  move_deadlines(decision);
  return Answer{};
}

/// Only a broker that restarts reads the row, and a power cut ends the membership, so the row need
/// not survive one.
CallResult decide_call(Decision& decision, const Caller& caller, const wire::CellAdmit& admit) {
  State& state = decision.state;
  TRY(check_admission(state, caller, admit));
  Tenant* tenant = state.tenants.find(admit.policy.tenant);
  const bool is_new = tenant == nullptr;
  const bool is_older = !is_new && tenant->part.incarnation == admit.incarnation &&
                        tenant->part.revision >= admit.revision;
  if (is_older) return Answer{part_of(state, *tenant)};
  tenant = TRY(put_policy(decision, admit.policy));
  tenant->part = {.incarnation = admit.incarnation, .revision = admit.revision};
  start_credit(*tenant, admit, decision.now);
  if (is_new)
    record_operator_action(
        decision,
        {.uid = caller.uid, .action = "admit", .object = "tenant:" + admit.policy.tenant.value});
  wire::CellPart part = part_of(state, *tenant);
  part.confirmed = part.confirmed && tenant->shares.empty();  // workers get their quotas next
  decision.add(effect::ReplyWhenJournaled{caller.call, Answer{part}});
  return std::nullopt;
}

}  // namespace leasehold
