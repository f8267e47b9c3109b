// Performs the broker's effects on the simulated machine and reports them to the judge.
#include "broker/decide/merged_batch.hpp"
#include "common/expects.hpp"
#include "tests/simulation/adapters/adapter_judge.hpp"
#include "tests/simulation/memory.hpp"
#include "tests/simulation/model_broker.hpp"
#include "tests/simulation/model_tenant.hpp"

namespace leasehold::simulation {

// --------------------------------------------------------------------------------------
// transitions

void Broker::met(const Transition& transition) {
  deps_.coverage.happened(transition);
  const auto& fault = deps_.machine.fault;
  if (fault && fault->triggered != nullptr) {
    deps_.coverage.met(transition, {fault->site, fault->action});
  }
}

void Broker::met_lease(LeaseState from, LeaseState to) {
  met({Kind::Lease, static_cast<std::uint8_t>(from), static_cast<std::uint8_t>(to)});
}

void Broker::observe_workers() {
  for (const auto& [id, worker] : state.workers.all()) {
    const auto [known, fresh] = workers_.try_emplace(id, worker.state);
    if (fresh || known->second == worker.state) continue;
    met({Kind::Worker, static_cast<std::uint8_t>(known->second),
         static_cast<std::uint8_t>(worker.state)});
    known->second = worker.state;
  }
}

void Broker::saw(const events::LeaseStateChanged& changed) {
  const bool fenced = changed.state == LeaseState::Fenced;
  if (changed.state != LeaseState::Live)
    met_lease(fenced ? LeaseState::Revoked : LeaseState::Live, changed.state);
  if (fenced) deps_.judge.fenced(changed.lease, changed.proof);
}

void Broker::saw(const events::RegionStateChanged& changed) {
  if (changed.kind != "extent") return saw_region(changed);
  for (int i = 0; i < kExtentStateCount; ++i) {
    const auto to = static_cast<ExtentState>(i);
    if (name(to) == changed.state) saw_extent(changed, to);
  }
}

/// A free extent is not in the books any more, so its pool is noted while it is.
Kind Broker::kind_of(ExtentId extent) {
  const ExtentRecord* found = state.extents.find(extent);
  if (found != nullptr && found->pool == MemoryPool::Swap) swap_.insert(extent);
  return swap_.contains(extent) ? Kind::Swap : Kind::Extent;
}

void Broker::saw_extent(const events::RegionStateChanged& changed, ExtentState to) {
  ExtentState& seen = extents_[changed.region];
  if (!to_recover_.empty()) {  // the events of the broker before are not known here
    if (to == ExtentState::Free) deps_.judge.freed(ExtentId{changed.region});
    return;
  }
  if (!may_become(seen, to)) violated("an extent made a transition that its table forbids");
  if (to == ExtentState::Free) deps_.judge.freed(ExtentId{changed.region});
  if (to == ExtentState::Quarantined) deps_.judge.quarantined(ExtentId{changed.region});
  if (seen == ExtentState::Quarantined) deps_.judge.released_by_operator(ExtentId{changed.region});
  const Kind kind = kind_of(ExtentId{changed.region});
  if (device_ && kind == Kind::Extent) saw_on_device(seen, to);
  met({kind, static_cast<std::uint8_t>(seen), static_cast<std::uint8_t>(to)});
  seen = to;
}

void Broker::saw_region(const events::RegionStateChanged& changed) {
  if (changed.state == "Free") {
    regions_.erase(changed.region);
    return;
  }
  for (int i = 0; i < kRegionStateCount; ++i) {
    const auto to = static_cast<RegionState>(i);
    if (name(to) != changed.state) continue;
    const auto [known, fresh] = regions_.try_emplace(changed.region, to);
    if (fresh) return;
    met({Kind::Region, static_cast<std::uint8_t>(known->second), static_cast<std::uint8_t>(to)});
    known->second = to;
  }
}

// --------------------------------------------------------------------------------------------
// words

/// A full disk, or a log that is too long, leaves each decision its own transaction.
bool Broker::write_together(const std::vector<const journal::Batch*>& batches) {
  Fiber::pause();
  if (deps_.machine.one_in(4)) return false;
  const journal::Batch batch = journal::merged(batches);
  unwritten_.insert(unwritten_.end(), batch.rows.begin(), batch.rows.end());
  write(std::exchange(unwritten_, {}));
  if (deps_.machine.reach(FaultSite::BrokerJournalWritten, *this)) Fiber::pause();
  return true;
}

/// A full disk refuses grants and nothing else.
void Broker::perform(const effect::Journal& effect) {
  Fiber::pause();
  disk_full_ = effect.batch.has_grants && deps_.machine.one_in(32);
  unwritten_.insert(unwritten_.end(), effect.batch.rows.begin(), effect.batch.rows.end());
  if (!disk_full_) write(std::exchange(unwritten_, {}));
  if (deps_.machine.reach(FaultSite::BrokerJournalWritten, *this)) Fiber::pause();
}

void Broker::perform(const effect::PublishGrant& effect) {
  if (deps_.machine.reach(FaultSite::BrokerGrantDecided, *this)) Fiber::pause();
  Fiber::pause();
  const auto found = state.leases.find(effect.lease);
  const bool engine = found && (*found)->scope == wire::LeaseScope::Engine;
  deps_.judge.granted(effect.lease, (*found)->worker(), engine);
  const LeaseState before = table.word(effect.lease.slot).state();
  table.grant(effect.lease, effect.deadline);
  met_lease(before, LeaseState::Live);
  if (deps_.machine.reach(FaultSite::BrokerGrantPublished, *this)) Fiber::pause();
}

void Broker::perform(const effect::StoreWords& effect) {
  std::vector<LeaseTable::LeaseChange> changes;
  for (const auto& change : effect.changes)
    changes.push_back({change.lease, change.to, change.reason});
  const bool fences = changes.front().to == LeaseState::Fenced;
  if (fences && deps_.machine.reach(FaultSite::BrokerFenceDecided, *this)) Fiber::pause();
  Fiber::pause();
  if (fences) {
    for (const auto& change : changes) deps_.judge.word_stored(change.lease, change.to);
  }
  table.store_words<SimulatedMemory>(effect.worker, changes, effect.at);
  if (fences) return;
  for (const auto& change : changes) deps_.judge.word_stored(change.lease, change.to);
  if (deps_.machine.reach(FaultSite::BrokerRevokePublished, *this)) Fiber::pause();
  WordsStored stored{.leases = {}, .at = deps_.machine.clock.now()};
  for (const auto& change : changes) stored.leases.push_back(change.lease);
  receive(std::move(stored));
}

void Broker::perform(const effect::SetDeadline& effect) {
  table.set_deadline(effect.lease, effect.deadline);
}

void Broker::perform(const effect::SetDrainDeadline& effect) {
  table.set_drain_deadline(effect.lease, effect.deadline);
  Connection* const way = connection_to(effect.worker);
  if (way == nullptr || !way->is_open()) return;
  auto* worker = dynamic_cast<Worker*>(way->ends[Connection::kClient].process);
  deps_.machine.send(*way, Connection::kClient, [worker] { worker->on_draining(); });
}

void Broker::perform(const effect::BeginQuietWatch& effect) {
  Fiber::pause();
  const auto link = links_.find(effect.worker);
  if (link == links_.end()) return;
  quiet_.watch(link->second.segment->reader, {effect.worker, effect.scope, effect.leases});
}

// ------------------------------------------------------------------------------------------
// workers

void Broker::perform(const effect::BindWorker& effect) {
  Connection* connection = connections_.at(effect.connection);
  segments_.push_back(take_spare_segment());
  links_[effect.worker] = {connection, segments_.back().get()};
  auto* worker = dynamic_cast<Worker*>(connection->ends[Connection::kClient].process);
  watched_[effect.worker] = worker;
  deps_.judge.attached(effect.worker, *worker);
}

void Broker::perform(const effect::ResumeWorker& effect) {
  links_.at(effect.worker).connection = connections_.at(effect.connection);
}

void Broker::perform(const effect::ForgetWorker& effect) {
  quiet_.forget(effect.worker);
  const auto link = links_.find(effect.worker);
  if (link == links_.end()) return;
  link->second.kept = false;
  for (const auto& [number, call] : pending_calls_) {
    const bool is_its = call.connection == link->second.connection && !call.timed_out;
    if (is_its && call.is_order) receive(call.failed({Errc::ConnectionLost, "closed"}));
  }
  std::erase_if(pending_calls_, [&](const auto& entry) {
    return entry.second.connection == link->second.connection;
  });
}

/// A worker that is away gets no calls: its return or its exit settles everything.
Connection* Broker::connection_to(AttachmentId worker) {
  const auto link = links_.find(worker);
  return link == links_.end() ? nullptr : link->second.connection;
}

void Broker::perform(const effect::SendGrant& effect) {
  Fiber::pause();
  const wire::LeaseGrant& grant = effect.grant;
  if (disk_full_ || deps_.machine.one_in(48)) {
    const Error none{Errc::OutOfMemory, "no memory"};
    return receive(GrantAnswered{grant.lease, grant.extents, none, false});
  }
  if (device_ && grant.pool == MemoryPool::Kv) return lend(effect);
  for (const ExtentId extent : grant.extents) {
    deps_.judge.object_made(extent, grant);
  }
  Connection* const taker = grant.adapter ? connection_to(effect.worker) : nullptr;
  if (taker != nullptr) deps_.adapters->granted(grant, *taker->ends[Connection::kClient].process);
  send_grant(effect);
}

void Broker::send_grant(const effect::SendGrant& effect) {
  const wire::LeaseGrant& grant = effect.grant;
  deps_.judge.grant_sent(grant.lease);
  Connection* const way = connection_to(effect.worker);
  if (way == nullptr) return;
  Connection& to = *way;
  const std::uint64_t number = expect_answer(to, [grant](Error error) -> Event {
    return GrantAnswered{grant.lease, grant.extents, error, true};
  });
  if (!to.is_open()) return;  // its closing settles the call
  auto* worker = dynamic_cast<Worker*>(to.ends[Connection::kClient].process);
  deps_.machine.send(to, Connection::kClient,
                     [worker, grant, number] { worker->on_grant(grant, number); });
}

/// As with an unmap, the ladder kills a worker that does not reply.
void Broker::perform(const effect::SendSettle& effect) {
  ensures(device_ != nullptr, "memory of the machine needs no settle call");
  Connection* const way = connection_to(effect.worker);
  if (way == nullptr || !way->is_open()) return;
  const std::uint64_t number = expect_answer(*way, [lease = effect.lease](Error error) -> Event {
    return SettleAnswered{lease, std::nullopt, error};
  });
  pending_calls_[number].give_up = TimePoint{INT64_MAX};
  auto* worker = dynamic_cast<Worker*>(way->ends[Connection::kClient].process);
  deps_.machine.send(*way, Connection::kClient,
                     [worker, lease = effect.lease, number] { worker->on_settle(lease, number); });
}

void Broker::perform(const effect::SendUnmap& effect) {
  scrubs_.push_back([this, effect] { send_unmap(effect); });
}

void Broker::send_unmap(const effect::SendUnmap& effect) {
  Connection* const way = connection_to(effect.worker);
  if (way == nullptr || !way->is_open()) return;
  Connection& to = *way;
  const std::uint64_t number = expect_answer(
      to, [lease = effect.lease](Error error) -> Event { return UnmapAnswered{lease, error}; });
  pending_calls_[number].give_up = TimePoint{INT64_MAX};  // the ladder kills the worker
  auto* worker = dynamic_cast<Worker*>(to.ends[Connection::kClient].process);
  deps_.machine.send(to, Connection::kClient,
                     [worker, lease = effect.lease, number] { worker->on_unmap(lease, number); });
}

/// No reply is awaited: a missing one is silence.
void Broker::perform(const effect::SendPing& effect) {
  Connection* const way = connection_to(effect.worker);
  if (way == nullptr) return;
  auto* worker = dynamic_cast<Worker*>(way->ends[Connection::kClient].process);
  deps_.machine.send(*way, Connection::kClient,
                     [worker, id = effect.worker] { worker->on_ping(id); });
}

void Broker::perform(const effect::SendReclaim& effect) {
  Fiber::pause();
  Connection* const way = connection_to(effect.worker);
  if (way == nullptr) return;
  Connection& to = *way;
  const std::uint64_t number = expect_answer(to, [asked = effect](Error error) -> Event {
    return ReclaimAnswered{asked.lease, asked.call, std::unexpected(error), asked.pool};
  });
  auto* worker = dynamic_cast<Worker*>(to.ends[Connection::kClient].process);
  deps_.machine.send(to, Connection::kClient,
                     [worker, asked = effect, number] { worker->on_reclaim(asked, number); });
}

void Broker::perform(const effect::SendFill& effect) {
  Connection* const way = connection_to(effect.worker);
  if (way == nullptr) return;
  const LeaseId lease = effect.fill.lease;
  const std::uint64_t number = expect_answer(
      *way, [lease](Error error) -> Event { return FillAnswered{lease, std::unexpected(error)}; });
  pending_calls_[number].give_up = TimePoint{INT64_MAX};  // the text may wait for its adapter
  auto* worker = dynamic_cast<Worker*>(way->ends[Connection::kClient].process);
  deps_.machine.send(*way, Connection::kClient,
                     [worker, fill = effect.fill, number] { worker->on_fill(fill, number); });
}

void Broker::perform(const effect::KillWorker& effect) {
  deps_.machine.send_kill(watched_.at(effect.worker)->pid);
}

void Broker::perform(const effect::NotifyDraining& effect) {
  const auto found = connections_.find(effect.holder);
  if (found == connections_.end()) return;
  Connection& way = *found->second;
  auto* tenant = dynamic_cast<Tenant*>(way.ends[Connection::kClient].process);
  if (tenant == nullptr) return;
  deps_.machine.send(way, Connection::kClient,
                     [tenant, notice = effect.draining] { tenant->on_draining(notice); });
}

// ------------------------------------------------------------------------------------------
// replies

void Broker::perform(const effect::Reply& effect) {
  const auto found = waiting_.find(effect.call);
  if (found == waiting_.end()) violated("a reply was sent twice, or without a call");
  const Waiting waiting = std::move(found->second);
  waiting_.erase(found);
  if (waiting.connection == nullptr) {  // an operator's
    if (waiting.on_reply) waiting.on_reply(effect.answer);
    return;
  }
  if (effect.answer) {
    const auto* weights = std::get_if<wire::WeightsOpened>(&effect.answer->body);
    if (weights != nullptr) deps_.judge.grant_sent(weights->lease);
  }
  deps_.machine.send(
      *waiting.connection, Connection::kClient,
      [waiting, answer = with_descriptor(effect.answer)] { waiting.on_reply(answer); });
}

void Broker::perform(const effect::ReplyWhenJournaled& effect) {
  std::optional<Error> refused;
  if (deps_.machine.one_in(16)) refused = Error{Errc::DiskFull, "no room"};
  receive(JournalWritten{effect.call, effect.answer, refused});
}

void Broker::perform(const effect::AppendEvent& effect) {
  std::visit([this](const auto& event) { saw(event); }, effect.event);
}

}  // namespace leasehold::simulation
