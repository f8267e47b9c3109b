#include "broker/decide/lease/grant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "broker/decide/deciders.hpp"
#include "broker/decide/lease/acquire.hpp"
#include "broker/decide/lease/adapter_leases.hpp"
#include "broker/decide/lease/fence.hpp"
#include "broker/decide/lease/rebind.hpp"
#include "broker/decide/lease/record.hpp"
#include "broker/decide/lease/retention.hpp"
#include "broker/decide/lease/revoke.hpp"
#include "broker/decide/lease/succession.hpp"
#include "broker/decide/memory/reclaim.hpp"
#include "broker/decide/memory/reserves.hpp"
#include "broker/decide/memory/return_memory.hpp"
#include "broker/decide/tenant/cell.hpp"
#include "broker/decide/tenant/publish.hpp"
#include "broker/decide/worker/liveness.hpp"

namespace leasehold {

/// Proves that no descriptor of a lease ever left the broker.
class GrantObserver {
 public:
  static std::optional<NeverMapped> observe(const LeaseRecord& record) {
    if (record.calls.grants_in_flight != 0 || record.sent_to_worker) return std::nullopt;
    return NeverMapped(record.id());
  }
};

void fence_if_never_mapped(Decision& decision, const LeaseRecord& record) {
  if (!record.is(LeaseState::Revoked)) return;
  if (const auto proof = GrantObserver::observe(record)) {
    fence_all(decision, std::vector<ProvenLease>{{record.id(), *proof}});
  }
}

/// The reason of the revocation is Released because the holder never received the lease.
void abandon_acquire(Decision& decision, LeaseRecord& record, const Error& why) {
  const CallId call = record.calls.grants.front().call;
  record.calls.grants.clear();
  give_back_rebind(decision.state, record);
  revoke_leases(decision, std::vector{record.id()}, RevokeReason::Released);
  fence_if_never_mapped(decision, record);
  decision.reply(call, std::unexpected(why));
}

std::uint32_t charged_to_others(State& state, const TenantId& tenant,
                                std::optional<LeaseId> apart) {
  std::uint64_t charged = state.leases.index().charged(tenant);
  if (apart) charged -= std::min<std::uint64_t>(charged, state.leases.at(*apart).quota_blocks());
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(charged, ~std::uint32_t{0}));
}

/// Sends extents to the worker in one or more messages. For adopted extents, the last message names
/// the lease that they come from. Precondition: the extents belong to this pool.
void send_grants(Decision& decision, LeaseRecord& record, MemoryPool pool,
                 std::span<const ExtentId> extents,
                 std::optional<LeaseId> adopted_from = std::nullopt) {
  if (extents.empty()) return;
  for (std::size_t from = 0; from < extents.size(); from += kExtentsPerGrant) {
    const auto part = extents.subspan(from, std::min(kExtentsPerGrant, extents.size() - from));
    const bool is_last = from + part.size() == extents.size();
    decision.add(effect::SendGrant{
        record.worker(),
        wire::LeaseGrant{
            .lease = record.id(),
            .tenant = record.tenant,
            .extent_size_bytes = decision.state.extents.extent_size_bytes(),
            .extents = {part.begin(), part.end()},
            .pool = pool,
            .scope = record.scope,
            .adopted_from = is_last ? adopted_from : std::nullopt,
            .api_key = record.api_key.value.empty() ? std::nullopt : std::optional(record.api_key),
            .scavenger = record.scavenger,
            .adapter = record.adapter(),
            .adapter_version = record.adapter_version}});
    ++record.calls.grants_in_flight;
  }
  note_call_sent(decision, record);
}

void grant_extents(Decision& decision, LeaseRecord& record, const ExtentRequest& request) {
  const std::vector<ExtentId> taken = decision.state.extents.take(
      request.pool, request.count, {record.id(), record.tenant, record.worker()});
  record.extents.insert(record.extents.end(), taken.begin(), taken.end());
  for (const ExtentId extent : taken) record_extent(decision, extent, &record);
  if (!decision.state.config.is_on_device(request.pool)) {
    std::ranges::copy(taken, std::back_inserter(request.may_stay_idle ? decision.touched.taken_idle
                                                                      : decision.touched.taken));
  }
  PendingGrant grant{
      .call = request.call, .pool = request.pool, .waiting = {taken.begin(), taken.end()}};
  grant.waiting.insert(request.adopted.begin(), request.adopted.end());
  record.calls.grants.push_back(std::move(grant));
  send_grants(decision, record, request.pool, request.adopted, record.adopted_from);
  send_grants(decision, record, request.pool, taken);
}

void ask_for_extents(Decision& decision, LeaseRecord& record, MemoryPool pool,
                     std::uint32_t count) {
  record.calls.late_shrinks.push_back(kInternalCall);
  decision.add(effect::SendReclaim{record.worker(), record.id(), kInternalCall, count, pool});
  note_call_sent(decision, record);
}

Result<void> require_worker_attached(const State& state, const LeaseRecord& record) {
  const Worker& worker = *state.workers.find(record.worker());
  if (!worker.resuming && worker.reattach_until == TimePoint{}) return {};
  return fail(Errc::BrokerLost,
              fmt::format("worker {} of lease {} is reconnecting after a broker restart; retry",
                          worker.name, to_string(record.id())));
}

void set_holder(Decision& decision, const Caller& caller, LeaseRecord& record) {
  record.holder = caller.connection;
  record.holder_process = {caller.pid, caller.start_ticks};
  decision.touch(record.id());
}

Result<Answer> reassign_holder(Decision& decision, const Caller& caller, Answer answer) {
  auto& acquired = std::get<wire::LeaseAcquired>(answer.body);
  LeaseRecord& record = *TRY(decision.state.leases.find(acquired.lease));
  TRY(require_live(record));
  TRY(require_worker_attached(decision.state, record));
  set_holder(decision, caller, record);
  acquired.deadline_boottime_ns = record.deadline.boottime_ns;
  return answer;
}

void reassign_pending_holder(Decision& decision, const Caller& caller, CallId first) {
  if (reassign_waiting(decision, caller, first)) return;
  for (const LeaseId id : decision.state.leases.open_leases()) {
    LeaseRecord& record = decision.state.leases.at(id);
    const PendingCalls& calls = record.calls;
    const bool acquires = record.is_acquiring() && calls.grants.front().call == first;
    if (acquires || calls.open == first) set_holder(decision, caller, record);
  }
}

namespace {

LeaseRecord& open_tenant_lease(Decision& decision, const Caller& caller,
                               const wire::LeaseAcquire& acquire, const Worker& worker) {
  const std::int64_t longest = decision.state.tenants.find(acquire.tenant)->policy.ttl_ms;
  const std::int64_t ttl_ms = acquire.ttl_ms == 0 ? longest : std::min(acquire.ttl_ms, longest);
  LeaseRecord& record = decision.state.leases.open(worker.id, wire::LeaseScope::Tenant);
  record.tenant = acquire.tenant;
  record.holder = caller.connection;
  record.holder_process = {caller.pid, caller.start_ticks};
  record.request = {caller.uid, caller.request_id.value, journal::digest(caller.fingerprint)};
  record.granted_at = decision.now;
  record.holder_uid = caller.uid;
  record.ttl = std::chrono::milliseconds(ttl_ms);
  const auto& max_lifetime = decision.state.tenants.find(acquire.tenant)->policy.max_lifetime_ms;
  if (max_lifetime) record.last_deadline = decision.now + std::chrono::milliseconds(*max_lifetime);
  choose_deadline(decision.state, record, record.deadline_after(decision.now));
  return record;
}

void refuse_growth(Decision& decision, LeaseRecord& record, const GrantAnswered& answered) {
  std::vector<ExtentId> unused;
  for (const ExtentId extent : answered.extents) {
    const ExtentRecord* found = decision.state.extents.find(extent);
    const bool ours = found && found->lease == record.id() && found->state == ExtentState::Owned;
    if (ours) unused.push_back(extent);
  }
  scrub_returned(decision, record, unused);
}

/// The worker has mapped the first extents of the lease.
void finish_opening(Decision& decision, LeaseRecord& record, CallId call) {
  if (record.scope == wire::LeaseScope::Shared) return start_fill(decision, record, call);
  if (record.adapter()) return finish_adapter_open(decision, record, call);
  finish_succession(decision, record, call);
}

void finish_grant(Decision& decision, LeaseRecord& record, const PendingGrant& grant) {
  if (!record.acquired) return finish_opening(decision, record, grant.call);
  recharge(decision, record);
  if (grant.refused) return decision.reply(grant.call, std::unexpected(*grant.refused));
  decision.reply(grant.call, resized(decision.state, record, grant.pool));
}

/// Notes that the worker can reach this device memory until it exits.
void note_lent(Decision& decision, const LeaseRecord& record, std::span<const ExtentId> extents) {
  for (const ExtentId id : extents) {
    ExtentRecord* extent = decision.state.extents.find(id);
    if (extent == nullptr || extent->lease != record.id()) continue;
    if (decision.state.config.is_on_device(extent->pool)) extent->lent_to = record.worker();
  }
}

bool refused_with(const GrantAnswered& answered, Errc code) {
  return answered.sent && answered.refused && answered.refused->code == code;
}

/// True if the worker itself refused. A lost connection or a timeout does not show what is mapped.
bool worker_refused(const GrantAnswered& answered) {
  return answered.refused && !refused_with(answered, Errc::ConnectionLost) &&
         !refused_with(answered, Errc::TimedOut);
}

/// Reclaims extents from a worker that answered after the caller had received TimedOut.
void handle_late_reply(Decision& decision, LeaseRecord& record, const GrantAnswered& answered) {
  std::uint32_t late = 0;
  MemoryPool pool = MemoryPool::Kv;
  for (const ExtentId extent : answered.extents) {
    if (record.calls.unclaimed.erase(extent) != 0) ++late;
    if (const auto* found = decision.state.extents.find(extent)) pool = found->pool;
  }
  if (late == 0) return;  // the extents were sent again for lease.attach, or answered before
  if (worker_refused(answered)) {
    refuse_growth(decision, record, answered);
    recharge(decision, record);
  } else if (!answered.refused) {
    ask_for_extents(decision, record, pool, late);
  }
}

void handle_reply(Decision& decision, LeaseRecord& record, const GrantAnswered& answered) {
  PendingGrant* pending = record.calls.grant_of(answered.extents);
  if (pending == nullptr) return handle_late_reply(decision, record, answered);
  const bool closed = refused_with(answered, Errc::ConnectionLost);
  if (answered.refused && !record.acquired && !closed) {
    return abandon_acquire(decision, record, *answered.refused);
  }
  if (worker_refused(answered)) refuse_growth(decision, record, answered);
  if (refused_with(answered, Errc::TimedOut)) {
    record.calls.unclaimed.insert(answered.extents.begin(), answered.extents.end());
  }
  if (answered.refused) pending->refused = answered.refused;
  for (const ExtentId extent : answered.extents) pending->waiting.erase(extent);
  if (!pending->waiting.empty()) return;
  // The holder's ConnectionClosed event will end the lease.
  if (!record.acquired && pending->refused) {
    decision.reply(pending->call, std::unexpected(*pending->refused));
  } else {
    finish_grant(decision, record, *pending);
  }
  std::erase_if(record.calls.grants,
                [](const PendingGrant& grant) { return grant.waiting.empty(); });
}

}  // namespace

Answer acquired_answer(const State& state, const LeaseRecord& record) {
  const Worker& worker = *state.workers.find(record.worker());
  const auto ttl = std::chrono::duration_cast<std::chrono::milliseconds>(record.ttl);
  return Answer{
      wire::LeaseAcquired{.lease = record.id(),
                          .token = mint_token(worker.token_key, {record.id(), record.tenant}),
                          .address = worker.address,
                          .worker = worker.name,
                          .arithmetic = worker.arithmetic,
                          .text_identity = worker.text_identity,
                          .max_context = worker.max_context,
                          .deadline_boottime_ns = record.deadline.boottime_ns,
                          .ttl_ms = ttl.count(),
                          .blocks = record.charged_blocks,
                          .adopted_blocks = record.adopted_extents * worker.blocks_per_extent,
                          .last_deadline_boottime_ns = record.last_deadline.boottime_ns}};
}

std::vector<ExtentId> owned_extents(const State& state, const LeaseRecord& record,
                                    MemoryPool pool) {
  std::vector<ExtentId> owned = state.extents.of_pool(pool, record.extents);
  std::erase_if(owned, [&](ExtentId extent) {
    return state.extents.find(extent)->state != ExtentState::Owned;
  });
  return owned;
}

void recharge(Decision& decision, LeaseRecord& record) {
  const State& state = decision.state;
  const std::uint64_t per_extent = state.workers.find(record.worker())->blocks_per_extent;
  const std::uint64_t held = owned_extents(state, record, MemoryPool::Kv).size() * per_extent;
  record.charged_blocks =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(record.charged_blocks, held));
  decision.touch(record.id());
}

Answer resized(const State& state, const LeaseRecord& record, MemoryPool pool) {
  const auto owned = static_cast<std::uint32_t>(owned_extents(state, record, pool).size());
  const std::uint32_t per_extent = state.workers.find(record.worker())->blocks_per_extent;
  const bool charged = pool == MemoryPool::Kv;
  return Answer{wire::LeaseResized{.extents = owned,
                                   .blocks = charged ? record.charged_blocks : owned * per_extent}};
}

/// Retry interval for blocks that the cell may add to this host's part.
constexpr std::int64_t kPartGrows_ms = 1'000;

/// Calls allow_blocks and adds the tenant's name to its error.
Result<BlockAllowance> allow_blocks_of(const wire::TenantPolicy& policy,
                                       const BlockDemand& demand) {
  auto allowed = allow_blocks(demand);
  if (allowed) return allowed;
  Error& error = allowed.error();
  error.detail = fmt::format("tenant {}: {}", policy.tenant.value, error.detail);
  if (policy.cell && error.retry_after_ms == 0) error.retry_after_ms = kPartGrows_ms;
  return allowed;
}

/// The replacement of a live lease does not wait for a turn, because its request is running.
Result<void> find_room(Decision& decision, const wire::LeaseAcquire& acquire,
                       const ExtentDemand& fresh, const GrantTerms& terms) {
  State& state = decision.state;
  if (fresh.extents == 0) return {};
  if (terms.as) return require_room(state, fresh, decision.now);
  const auto room = require_turn(state, acquire, fresh, decision.now);
  if (room) return {};
  return std::unexpected(keep_place(state, acquire, fresh, room.error(), decision.now));
}

CallResult grant_tenant_lease(Decision& decision, const Caller& caller,
                              const wire::LeaseAcquire& acquire, const GrantTerms& terms) {
  State& state = decision.state;
  Tenant& tenant = *state.tenants.find(acquire.tenant);
  TRY(require_part(decision, tenant));
  const Adoption adoption = find_adoption(state, caller, acquire, *terms.worker);
  const BlockDemand blocks{
      .max_blocks = tenant.policy.max_blocks,
      .charged_others = charged_to_others(state, acquire.tenant, terms.replaces),
      .wanted = std::max(acquire.blocks, adoption.blocks),
      .blocks_per_extent = terms.worker->blocks_per_extent};
  const auto within_quota = allow_blocks_of(tenant.policy, blocks);
  if (!within_quota && !acquire.scavenger)
    return refuse_or_end_own_scavengers(decision, acquire.tenant, within_quota.error());
  const BlockAllowance allowed = TRY(within_quota);
  TRY(require_free_slot(decision));
  const ExtentDemand demand{acquire.tenant, terms.worker->id, allowed.extents, acquire.scavenger};
  TRY(require_lendable(state, demand));
  ExtentDemand fresh = beyond(demand, adoption);
  fresh.extents = terms.first_extents.value_or(fresh.extents);
  const auto room = find_room(decision, acquire, fresh, terms);
  if (!room && terms.as) return refuse_or_scrub(decision, fresh, room.error());
  if (!room) return refuse_or_reclaim(decision, caller.call, fresh, room.error());
  std::optional<RebindToken> rebind = TRY(admit_rebind(state, acquire, decision.now));
  LeaseRecord& record = open_tenant_lease(decision, caller, acquire, *terms.worker);
  record.rebind = std::move(rebind);
  record.charged_blocks = allowed.charged;
  record.api_key = terms.api_key;
  record.scavenger = acquire.scavenger;
  record.replace_mode = terms.as;
  if (!terms.as && !acquire.scavenger) tenant.claim = {};
  if (acquire.replaces) state.places.give_up(acquire.tenant, *acquire.replaces);
  if (terms.replaces) begin_succession(decision, *terms.replaces, record);
  decision.add(effect::PublishGrant{record.id(), record.deadline});
  record_lease(decision, record);
  const std::vector<ExtentId> adopted = adopt_extents(decision, adoption, allowed.extents, record);
  grant_extents(decision, record,
                {.call = caller.call,
                 .count = fresh.extents,
                 .adopted = adopted,
                 .may_stay_idle = !record.rebind && !terms.as});
  return std::nullopt;  // answered once the worker has mapped everything
}

CallResult decide_call(Decision& decision, const Caller& caller, const wire::LeaseAttach& attach) {
  LeaseRecord& record = *TRY(decision.state.leases.find(attach.lease));
  const Worker* worker = decision.state.workers.find_by_connection(caller.connection);
  if (worker == nullptr || record.worker() != worker->id ||
      record.scope == wire::LeaseScope::Engine) {
    return fail(Errc::PermissionDenied,
                fmt::format("lease {} was not granted to this worker", to_string(attach.lease)));
  }
  TRY(require_live(record));
  for (const MemoryPool pool : kMemoryPools) {
    send_grants(decision, record, pool, owned_extents(decision.state, record, pool));
  }
  return Answer{};
}

void decide_event(Decision& decision, const GrantAnswered& answered) {
  const auto found = decision.state.leases.find(answered.lease);
  if (!found) return;  // the slot has a newer lease
  LeaseRecord& record = **found;
  // After a timeout the grant stays in flight, because the worker may still map it.
  const bool arrived = !refused_with(answered, Errc::TimedOut);
  if (arrived && record.calls.grants_in_flight > 0) {
    --record.calls.grants_in_flight;
    note_call_answered(decision, record);
  }
  record.sent_to_worker = record.sent_to_worker || answered.sent;
  if (answered.sent) note_lent(decision, record, answered.extents);
  if (record.is(LeaseState::Live)) return handle_reply(decision, record, answered);
  if (!answered.sent) fence_if_never_mapped(decision, record);
}

}  // namespace leasehold
