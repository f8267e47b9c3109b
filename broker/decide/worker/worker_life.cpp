#include <fmt/format.h>

#include <algorithm>

#include "broker/decide/deciders.hpp"
#include "broker/decide/lease/fence.hpp"
#include "broker/decide/lease/record.hpp"
#include "broker/decide/lease/retention.hpp"
#include "broker/decide/lease/revoke.hpp"
#include "broker/decide/memory/reserves.hpp"
#include "broker/decide/memory/return_memory.hpp"
#include "broker/decide/tenant/adapters.hpp"
#include "broker/decide/worker/liveness.hpp"
#include "broker/decide/worker/unavailable.hpp"

namespace leasehold {
namespace {

/// Reason of a request that ended with its lease. If the request ended before the word was stored,
/// the worker stopped at the lease's deadline by itself.
constexpr std::string_view kStopped = "Revoked";

Answer attached(const State& state, const Worker& worker) {
  return Answer{wire::WorkerAttached{.worker = worker.index,
                                     .attachment = worker.id,
                                     .slot_count = state.config.slot_count,
                                     .token_key = to_hex(worker.token_key),
                                     .device = state.config.device,
                                     .device_uuid = state.config.device_uuid,
                                     .protocol = wire::kWorkerProtocol},
                WorkerDescriptors{worker.id}};
}

Result<void> check_protocol(const wire::WorkerAttach& attach) {
  const std::uint32_t theirs = attach.protocol.value_or(wire::kUnnamedProtocol);
  if (theirs >= wire::kOldestWorkerProtocol && theirs <= wire::kWorkerProtocol) return {};
  return fail(Errc::ProtocolMismatch,
              fmt::format("worker {} speaks protocol {}, this broker serves {} to {}; {}",
                          attach.worker, theirs, wire::kOldestWorkerProtocol, wire::kWorkerProtocol,
                          theirs > wire::kWorkerProtocol ? "upgrade and restart the broker"
                                                         : "start a newer worker"));
}

/// True if a worker may choose the extent size. The first worker chooses it for all. It can be
/// chosen again when no extent exists and no running worker uses it.
bool extent_size_is_open(const State& state) {
  const auto uses_it = [](const auto& entry) {
    return entry.second.blocks_per_extent != 0 && entry.second.state != WorkerState::Gone;
  };
  return state.extents.records().empty() && std::ranges::none_of(state.workers.all(), uses_it);
}

Result<void> check_block_size(const State& state, std::uint64_t block_bytes) {
  const std::uint64_t capacity_bytes = state.config.capacity_bytes;
  if (block_bytes == 0 || block_bytes > capacity_bytes) {
    return fail(
        Errc::BadRequest,
        fmt::format("kv_block_size_bytes is {}; it must be 1 to {}, the broker's --capacity",
                    block_bytes, capacity_bytes));
  }
  const bool is_open = extent_size_is_open(state);
  const std::uint64_t extent_bytes = state.extents.extent_size_bytes();
  if (!is_open && block_bytes > extent_bytes) {
    return fail(
        Errc::BadRequest,
        fmt::format("a KV block of {} bytes does not fit an extent of {} bytes, the size for "
                    "the first worker; start this one on another broker",
                    block_bytes, extent_bytes));
  }
  if (is_open && state.extents.size_for(block_bytes) > capacity_bytes) {
    return fail(Errc::BadRequest,
                fmt::format("a KV block of {} bytes needs an extent of {} bytes; the broker's "
                            "--capacity is {}",
                            block_bytes, state.extents.size_for(block_bytes), capacity_bytes));
  }
  return {};
}

/// True if the same process, on any connection, was found untrusted.
bool is_untrusted(const State& state, const Caller& caller) {
  return std::ranges::any_of(state.workers.all(), [&caller](const auto& entry) {
    const Worker& worker = entry.second;
    return worker.untrusted && worker.state != WorkerState::Gone && worker.pid == caller.pid &&
           worker.start_ticks == caller.start_ticks;
  });
}

LeaseRecord* find_reported(State& state, const Worker& worker, LeaseId lease) {
  const auto found = state.leases.find(lease);
  return found && (*found)->worker() == worker.id ? *found : nullptr;
}

/// Notes a reported latency, unless it is negative or longer than the time since the revocation.
void note_reported(Decision& decision, LeaseRecord& record, RevokeClock clock, Duration reported) {
  const Duration longest = decision.now - record.revoked_at();
  if (reported < Duration::zero() || reported > longest) return;
  note_latency(decision, record, clock, reported);
}

enum class Report { New, Known, NotItsOwn };

/// Applies a worker's event to its leases. Known: the broker already has the event and does not
/// write it. NotItsOwn: the worker may not report this event.
struct TakeReport {
  Decision& decision;
  const Worker& worker;
  TimePoint at;

  bool is_before_store(const LeaseRecord& record) const {
    return record.is(LeaseState::Live) || at < record.revoked_at();
  }
  /// A refusal before the word was stored is not a latency: the worker refused because of the
  /// lease's deadline.
  Report operator()(const events::ForwardRevoked& seen) const {
    LeaseRecord* record = find_reported(decision.state, worker, seen.lease);
    if (record == nullptr) return Report::NotItsOwn;
    if (!is_before_store(*record))
      note_reported(decision, *record, RevokeClock::Refuse, Duration(seen.since_flip_ns));
    const bool has_ended_normally =
        !record->is(LeaseState::Live) && !is_revocation(reason_of(record->lease));
    if (has_ended_normally || std::exchange(record->end.refusal_reported, true))
      return Report::Known;
    return Report::New;
  }
  Report operator()(const events::RequestCompletedEvent& ended) const {
    LeaseRecord* record = find_reported(decision.state, worker, ended.lease);
    if (record == nullptr || record->tenant.value != ended.tenant) return Report::NotItsOwn;
    if (is_before_store(*record)) {
      const bool ran_out = record->deadline != TimePoint{} && at >= record->deadline;
      const bool stopped = ran_out && ended.reason == kStopped;
      if (stopped && record->end.stopped_at == TimePoint{}) record->end.stopped_at = at;
      return Report::New;
    }
    note_reported(decision, *record, RevokeClock::Error, at - record->revoked_at());
    return Report::New;
  }
  /// The old lease may be on another worker, but must belong to the same tenant.
  Report operator()(const events::Rebind& rebind) const {
    const LeaseRecord* fresh = find_reported(decision.state, worker, rebind.new_lease);
    if (fresh == nullptr || fresh->tenant.value != rebind.tenant) return Report::NotItsOwn;
    const auto old = decision.state.leases.find(rebind.old_lease);
    if (!old && old.error().code == Errc::StaleGeneration) return Report::New;
    const bool is_its_own =
        old && (*old)->scope == wire::LeaseScope::Tenant && (*old)->tenant == fresh->tenant;
    if (!is_its_own) return Report::NotItsOwn;
    if ((*old)->end.rebound_at != TimePoint{}) return Report::New;
    (*old)->end.rebound_at = at;
    (*old)->end.rebound_to = rebind.new_lease;
    return Report::New;
  }
  Report operator()(const events::BatchedDecodeStep&) const { return Report::New; }
  // Workers may not report these events: only the broker creates them.
  Report operator()(const events::LeaseStateChanged&) const { return Report::NotItsOwn; }
  Report operator()(const events::RegionStateChanged&) const { return Report::NotItsOwn; }
  Report operator()(const events::LeaseDraining&) const { return Report::NotItsOwn; }
  Report operator()(const events::OperatorAction&) const { return Report::NotItsOwn; }
  Report operator()(const events::WorkerUntrusted&) const { return Report::NotItsOwn; }
  Report operator()(const events::WorkerUnresponsive&) const { return Report::NotItsOwn; }
  Report operator()(const events::WorkerReplacement&) const { return Report::NotItsOwn; }
  Report operator()(const events::WorkerService&) const { return Report::NotItsOwn; }
  Report operator()(const events::KeyExpired&) const { return Report::NotItsOwn; }
  Report operator()(const events::CellMembership&) const { return Report::NotItsOwn; }
  Report operator()(const events::AdapterLoaded&) const { return Report::NotItsOwn; }
  Report operator()(const events::AdapterEvicted&) const { return Report::NotItsOwn; }
};

/// Adds to a worker's report what only the broker knows about the revocation and the replacement.
/// Only the worker knows how long a move took, but it cannot be longer than the time since the
/// grant.
void complete(events::Rebind& rebind, State& state, TimePoint at) {
  const LeaseRecord* fresh = state.leases.find(rebind.new_lease).value_or(nullptr);
  const bool is_replacement = fresh != nullptr && fresh->replaces == rebind.old_lease;
  if (is_move(rebind.mode) && is_replacement && fresh->replace_mode) {
    rebind.mode = *fresh->replace_mode;
    const std::int64_t longest = std::max<std::int64_t>(0, (at - fresh->granted_at).count());
    rebind.latency_ns = std::clamp<std::int64_t>(rebind.latency_ns, 0, longest);
    return;
  }
  const bool failed_over = is_replacement && fresh->replace_mode == wire::RebindMode::Failover;
  const bool adopted = fresh != nullptr && fresh->adopted_from == rebind.old_lease;
  rebind.mode = failed_over ? wire::RebindMode::Failover
                : adopted   ? wire::RebindMode::Adopt
                            : wire::RebindMode::Reprefill;
  const auto old = state.leases.find(rebind.old_lease);
  const bool was_revoked = old && !(*old)->is(LeaseState::Live) && (*old)->revoked_at() <= at;
  rebind.latency_ns = was_revoked ? (at - (*old)->revoked_at()).count() : -1;
}

/// The new lease may already have ended or been closed when the report arrives.
void count_rebind(Decision& decision, const events::Rebind& rebind) {
  State& state = decision.state;
  const LeaseRecord* fresh = state.leases.find(rebind.new_lease).value_or(nullptr);
  if (fresh == nullptr || rebind.latency_ns < 0) return;
  const Duration latency(rebind.latency_ns);
  state.counts.rebinds.at(static_cast<std::size_t>(rebind.mode)).add(latency, decision.now);
  Tenant* tenant = state.tenants.find(fresh->tenant);
  if (tenant != nullptr) tenant->rebind_latencies.add(latency, decision.now);
}

}  // namespace

CallResult decide_call(Decision& decision, const Caller& caller, const wire::WorkerAttach& attach) {
  State& state = decision.state;
  if (state.stopping) return std::unexpected(broker_stopping());
  TRY(check_protocol(attach));
  if (is_untrusted(state, caller)) {
    return fail(Errc::PermissionDenied,
                fmt::format("process {} wrote to memory after its fence; end it and start another "
                            "worker",
                            caller.pid));
  }
  if (const Worker* same = state.workers.find_by_connection(caller.connection)) {
    if (same->name == attach.worker) return attached(state, *same);
    return fail(Errc::BadRequest,
                fmt::format("this connection already belongs to worker {}", same->name));
  }
  if (attach.resume) return resume_worker(decision, caller, attach);
  if (state.workers.find_serving(attach.worker) != nullptr) {
    return fail(Errc::BadRequest,
                fmt::format("a worker named {} is attached; choose another name", attach.worker));
  }
  const auto holds_memory = [&](AttachmentId id) { return !state.leases.leases_on(id).empty(); };
  const std::uint32_t share = state.config.workers_per_user();
  const auto is_counted = [&](AttachmentId id) {
    return std::ranges::any_of(state.leases.leases_on(id), [&state](LeaseId lease) {
      // Retained memory does not count, because it is scrubbed on demand.
      return state.leases.at(lease).retained_until == TimePoint{};
    });
  };
  if (state.workers.count_of(caller.uid, is_counted) >= share) {
    return fail(Errc::PoolExhausted,
                fmt::format("user {} has {} workers, its share of {}; retry when one has exited",
                            caller.uid, share, kMaxWorkers));
  }
  Worker* worker = state.workers.add(holds_memory);
  if (worker == nullptr) {
    if (auto retry = end_retentions_of_exited_worker(decision))
      return std::unexpected(*std::move(retry));
    return fail(Errc::PoolExhausted,
                fmt::format("{} workers are attached; retry when one has exited", kMaxWorkers));
  }
  worker->name = attach.worker;
  worker->connection = caller.connection;
  worker->pid = caller.pid;
  worker->start_ticks = caller.start_ticks;
  worker->uid = caller.uid;
  decision.touch(worker->id);
  worker->token_key = derive_worker_key(state.config.token_key, worker->index, worker->id.value);
  start_liveness_probes(decision, *worker);
  decision.add(effect::BindWorker{worker->id, caller.connection});
  return attached(state, *worker);
}

CallResult decide_call(Decision& decision, const Caller& caller, const wire::WorkerReady& ready) {
  State& state = decision.state;
  Worker* worker = state.workers.find_by_connection(caller.connection);
  if (worker == nullptr || worker->state > WorkerState::Ready) {
    return fail(Errc::PermissionDenied, "call worker.attach first");
  }
  TRY(check_block_size(state, ready.kv_block_size_bytes));
  // A worker that reconnects has texts to go on with.
  if (!worker->resuming) TRY(require_no_adapter(state, ready));
  if (extent_size_is_open(state)) {
    state.extents.choose_size(ready.kv_block_size_bytes);
    decision.touched.shape = true;
  }
  const std::uint64_t extent_bytes = state.extents.extent_size_bytes();
  if (worker->resuming) reconcile_resumed(decision, *worker);
  move(*worker, WorkerState::Ready);
  decision.touch(worker->id);
  worker->out_of_service.reset();     // the worker reports a loss again
  worker->sleep = SleepState::Awake;  // the worker reports its sleep again
  worker->can_sleep = ready.can_sleep;
  worker->model = ready.model;
  worker->aliases = ready.aliases;
  worker->arithmetic = ready.arithmetic;
  worker->text_identity = ready.text_identity;
  worker->max_context = ready.max_context;
  worker->kv_identity = ready.kv_identity.value_or("");
  worker->address = ready.address;
  worker->max_extents = ready.max_extents;
  worker->blocks_per_extent = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(extent_bytes / ready.kv_block_size_bytes, 1u << 20));
  fix_reserves(decision);
  if (const std::uint64_t beyond = reserved_beyond_capacity(state); beyond > 0) {
    decision.warn(
        fmt::format("reserves of tenants exceed the capacity; lower some extents={}", beyond));
  }
  start_sampling(decision, *worker);
  send_admission(decision, *worker);
  notify_of_adapters(decision, *worker);
  decision.waits_may_end = true;
  return Answer{wire::ExtentShape{.extent_size_bytes = extent_bytes,
                                  .blocks_per_extent = worker->blocks_per_extent}};
}

/// The socket closed, which does not prove that the process has stopped. Revokes the worker's
/// leases; a quiet segment or the process's exit fences them.
void mark_worker_lost(Decision& decision, Worker& worker) {
  worker.socket_open = false;
  move(worker, WorkerState::Lost);
  decision.touch(worker.id);
  revoke_leases(decision, decision.state.leases.leases_on(worker.id), RevokeReason::WorkerGone);
}

void decide_event(Decision& decision, const WorkerExited& exited) {
  Worker* worker = decision.state.workers.find(exited.proof.worker());
  if (worker == nullptr || worker->state == WorkerState::Gone) return;
  move(*worker, WorkerState::Gone);
  worker->gone_at = decision.now;
  decision.touch(worker->id);
  worker->socket_open = false;
  worker->reattach_until = TimePoint{};
  const std::vector<LeaseId> leases = decision.state.leases.leases_on(worker->id);
  revoke_leases(decision, leases, RevokeReason::WorkerGone);
  std::vector<ProvenLease> proven;
  std::vector<LeaseId> fenced_before;
  for (const LeaseId id : leases) {
    if (decision.state.leases.at(id).is(LeaseState::Fenced)) fenced_before.push_back(id);
    proven.push_back({id, exited.proof});
  }
  fence_all(decision, proven);
  for (const LeaseId id : fenced_before) {
    collect_memory(decision, decision.state.leases.at(id));
  }
  release_held(decision, worker->id);
  decision.state.steps.newest.erase(worker->id);
  decision.add(effect::ForgetWorker{worker->id});
}

void decide_event(Decision& decision, const WorkerReported& reported) {
  const Worker* worker = decision.state.workers.find_by_connection(reported.connection);
  if (worker == nullptr) return;
  const TimePoint at = std::min(reported.report.at, decision.now);
  const Report taken = std::visit(TakeReport{decision, *worker, at}, reported.report.event);
  if (taken == Report::Known) return;
  if (taken == Report::NotItsOwn) {
    return decision.warn(
        fmt::format("worker reported an event that it must not report worker={} event={}",
                    worker->name, events::name(reported.report.event)));
  }
  events::Event event = reported.report.event;
  if (auto* rebind = std::get_if<events::Rebind>(&event)) {
    complete(*rebind, decision.state, at);
    count_rebind(decision, *rebind);
  }
  decision.add(effect::AppendEvent{std::move(event), at});
}

void send_admission(Decision& decision, const Worker& worker) {
  if (worker.state != WorkerState::Ready) return;
  decision.add(effect::SendAdmission{
      worker.id,
      {.admits = worker.is_admitting(), .incarnation = decision.state.cell.incarnation}});
}

}  // namespace leasehold
