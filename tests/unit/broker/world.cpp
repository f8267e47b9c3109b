#include "tests/unit/broker/world.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "broker/supervise/ack_observer.hpp"
#include "broker/supervise/kept_slots.hpp"

namespace leasehold {
template <class Message>
std::string fingerprint(const Message& message) {
  return std::string(Message::kMethod) + message.to_json().dump();
}
template std::string fingerprint(const wire::AdapterAdd&);
template std::string fingerprint(const wire::AdapterRemove&);
template std::string fingerprint(const wire::AdapterLoad&);
template std::string fingerprint(const wire::AdapterUnload&);
template std::string fingerprint(const wire::AdapterOpen&);
template std::string fingerprint(const wire::TenantAdmit&);
template std::string fingerprint(const wire::TenantRemove&);
template std::string fingerprint(const wire::KeyCreate&);
template std::string fingerprint(const wire::KeyRevoke&);
template std::string fingerprint(const wire::KeyUpdate&);
template std::string fingerprint(const wire::LeaseRevoke&);
template std::string fingerprint(const wire::PrefixPublish&);
template std::string fingerprint(const wire::LeaseDrain&);
template std::string fingerprint(const wire::LeaseUndrain&);
template std::string fingerprint(const wire::WorkerReplace&);
template std::string fingerprint(const wire::WorkerSleep&);
template std::string fingerprint(const wire::WorkerWake&);
template std::string fingerprint(const wire::WeightsSleep&);
template std::string fingerprint(const wire::WeightsWake&);
template std::string fingerprint(const wire::QuarantineRelease&);
template std::string fingerprint(const wire::LeaseAcquire&);
template std::string fingerprint(const wire::LeaseReplace&);
template std::string fingerprint(const wire::LeaseRenew&);
template std::string fingerprint(const wire::LeaseRelease&);
template std::string fingerprint(const wire::LeaseGrow&);
template std::string fingerprint(const wire::LeaseShrink&);
template std::string fingerprint(const wire::LeaseHold&);
template std::string fingerprint(const wire::LeaseQuery&);
template std::string fingerprint(const wire::WorkerReady&);
template std::string fingerprint(const wire::WeightsOpen&);
template std::string fingerprint(const wire::WeightsPublish&);

BrokerConfig small_config(Duration worker_timeout) {
  return {.slot_count = 64,
          .capacity_bytes = 32 * kMiB,
          .weights_capacity_bytes = 64 * kMiB,
          .timeouts = {.fence = std::chrono::seconds(2), .worker = worker_timeout}};
}

World::World(const BrokerConfig& config)
    : state(config), table(LeaseTable::create(config.slot_count).value()) {}

namespace {

Recovered recovered(const World& before, const World::Survivors& survivors,
                    const BrokerConfig& config) {
  journal::Image image = before.journal;
  image.boot_id = "boot-1";
  Facts facts{.now = before.clock.now(),
              .boot_id = survivors.same_boot ? "boot-1" : "boot-2",
              .kept_regions = survivors.regions,
              .exited_workers = survivors.exited_workers,
              .exited_holders = survivors.exited_holders,
              .reattach_grace = std::chrono::seconds(5)};
  if (survivors.table) facts.table = kept_slots(before.table);
  for (const auto& [id, row] : image.workers) {
    if (survivors.table) facts.kept_workers.insert(id);
  }
  return recover(image, facts, config).value();
}

}  // namespace

World::World(World& before, const Survivors& survivors, const BrokerConfig& config)
    : World(recovered(before, survivors, config), before, survivors.table) {}

World::World(Recovered recovered, World& before, bool table_kept)
    : state(std::move(recovered.state)),
      clock(before.clock),
      table(table_kept ? std::move(before.table)
                       : LeaseTable::create(state.config.slot_count).value()),
      journal(before.journal),
      ledger(before.ledger),
      next_request_(before.next_request_) {
  if (table_kept) segments_ = std::move(before.segments_);
  for (const auto& word : recovered.words) table.restore(word.lease, word.to, word.reason);
  record_and_perform(recovered.effects);
  post(Tick{});
}

void World::post(Event event) {
  queue_.push_back(std::move(event));
  settle();
  if (!quiet.is_waiting()) return;
  auto proofs = quiet.observe();
  if (!proofs.empty()) post(QuietObserved{std::move(proofs)});
}

void World::settle() {
  while (!queue_.empty()) {
    const Event event = std::move(queue_.front());
    queue_.pop_front();
    record_and_perform(decide(state, event, clock.now()));
  }
}

void World::record_and_perform(std::span<const Effect> decided) {
  for (const Effect& effect : decided) {
    effects.push_back(effect);
    perform_all({&effect, 1}, *this);
  }
}

void World::advance(Duration by) {
  clock.advance(by);
  post(Tick{});
}

void World::stall(Duration gap) {
  clock.advance(gap);
  post(BrokerStalled{gap});
  post(Tick{});
}

const Error& World::error_of(CallId call) const {
  const Result<Answer>& found = answers.at(call);
  if (found) throw std::runtime_error("the call was granted");
  return found.error();
}

AttachmentId World::attach_worker(const std::string& name, ConnectionId connection,
                                  std::uint64_t block_bytes) {
  const CallId attach = call(connection, wire::WorkerAttach{.worker = name});
  call(connection, wire::WorkerReady{.address = "/run/" + name,
                                     .model = "model",
                                     .kv_block_size_bytes = block_bytes,
                                     .can_sleep = true});
  return std::get<WorkerDescriptors>(answers.at(attach)->descriptors).worker;
}

void World::admit_tenant(const std::string& name, std::uint32_t max_blocks) {
  call(kOperator, wire::TenantAdmit{.tenant = {name}, .max_blocks = max_blocks});
}

CallId World::acquire(const std::string& tenant, std::uint32_t blocks, ConnectionId holder) {
  return call(holder, wire::LeaseAcquire{.tenant = {tenant}, .blocks = blocks});
}

LeaseId World::acquired(const std::string& tenant, std::uint32_t blocks, ConnectionId holder) {
  return answer<wire::LeaseAcquired>(acquire(tenant, blocks, holder)).lease;
}

CallId World::revoke(LeaseId lease) {
  return call(kOperator, wire::LeaseRevoke{.lease = lease});
}

void World::begin_unit(AttachmentId worker, Touches touches, std::uint32_t thread) {
  WorkerSegment& segment = *segments_.at(worker);
  segment.writer.announce(thread).store(announcement(++segment.seq, touches));
}

void World::end_unit(AttachmentId worker, std::uint32_t thread) {
  WorkerSegment& segment = *segments_.at(worker);
  segment.writer.announce(thread).store(announcement(++segment.seq, Touches::Nothing));
  post(Tick{});
}

void World::answer_grant(bool mapped) {
  const effect::SendGrant sent = grants.front();
  grants.pop_front();
  std::optional<Error> refused;
  if (!mapped) refused = Error{Errc::OutOfMemory, "cannot map"};
  post(GrantAnswered{sent.grant.lease, sent.grant.extents, refused});
}

void World::answer_settle(bool settled) {
  const effect::SendSettle sent = settles.front();
  settles.pop_front();
  const Result<control::Payload> reply =
      settled ? Result<control::Payload>() : fail(Errc::IllegalTransition, "live");
  queue_.push_back(SettleAnswered{sent.lease, AckObserver::observe(sent.lease, reply),
                                  settled ? std::nullopt : std::optional(reply.error())});
  if (!workers_answer) settle();
}

void World::answer_unmap() {
  const effect::SendUnmap sent = unmaps.front();
  unmaps.pop_front();
  post(UnmapAnswered{sent.lease, std::nullopt});
}

std::string World::proof_of(LeaseId lease) {
  const auto* fenced = std::get_if<Lease<Fenced>>(&record(lease).lease);
  return fenced ? std::string(name(fenced->state().proof)) : "";
}

void World::perform(const effect::CreateExtents& effect) {
  if (!memory_fails) objects.insert(effect.extents.begin(), effect.extents.end());
}

void World::perform(const effect::Journal& effect) {
  grant_unwritten_ = disk_full && effect.batch.has_grants;
  const bool has_usage = std::ranges::any_of(effect.batch.rows, [](const journal::Row& row) {
    return std::holds_alternative<journal::UsageRow>(row);
  });
  unwritten_ = disk_full && (effect.batch.has_grants || effect.batch.durable ||
                             effect.batch.synced_later || has_usage);
  if (unwritten_) return;  // later rows replace these
  for (const journal::Row& row : effect.batch.rows) {
    apply(journal, row);
    ledger.add(row);
  }
}

void World::perform(const effect::PublishGrant& effect) {
  table.grant(effect.lease, effect.deadline);
}

void World::perform(const effect::StoreWords& effect) {
  std::vector<LeaseTable::LeaseChange> changes;
  for (const auto& change : effect.changes)
    changes.push_back({change.lease, change.to, change.reason});
  table.store_words(effect.worker, changes, effect.at);
}

void World::perform(const effect::SetDeadline& effect) {
  table.set_deadline(effect.lease, effect.deadline);
}

void World::perform(const effect::SetDrainDeadline& effect) {
  table.set_drain_deadline(effect.lease, effect.deadline);
}

void World::perform(const effect::BindWorker& effect) {
  WorkerSegmentReader reader = WorkerSegmentReader::create().value();
  WorkerSegmentWriter writer = WorkerSegmentWriter::attach(reader.writer_fd().value()).value();
  segments_[effect.worker] =
      std::make_unique<WorkerSegment>(WorkerSegment{std::move(reader), std::move(writer)});
}

void World::restart(Duration grace) {
  for (const auto& [id, each] : state.workers.all()) {
    Worker& worker = *state.workers.find(id);
    if (worker.state == WorkerState::Gone) continue;
    worker.state = WorkerState::Lost;
    worker.connection = ConnectionId{};
    worker.socket_open = false;
    worker.reattach_until = clock.now() + grace;
  }
  state.leases.for_each_open([this](const LeaseRecord& each) {
    LeaseRecord& record = state.leases.at(each.id());
    record.holder = ConnectionId{};
    record.calls.grants.clear();
    record.calls.grants_in_flight = 0;
    record.sent_to_worker = true;
    record.may_be_mapping = true;
  });
  for (const auto& [id, record] : state.extents.records()) state.extents.mark_unavailable(id);
  for (const auto& [id, tenant] : state.tenants.all()) state.tenants.find(id)->shares.clear();
  grants.clear();
  unmaps.clear();
}

void World::perform(const effect::ForgetWorker& effect) {
  quiet.forget(effect.worker);
}

void World::perform(const effect::SendGrant& effect) {
  const wire::LeaseGrant& grant = effect.grant;
  if (memory_fails || grant_unwritten_) {
    const Error why{memory_fails ? Errc::OutOfMemory : Errc::DiskFull, "no room"};
    queue_.push_back(GrantAnswered{grant.lease, grant.extents, why, false});
    return;
  }
  if (state.config.is_on_device(grant.pool))
    objects.insert(grant.extents.begin(), grant.extents.end());
  if (!workers_answer) return grants.push_back(effect);
  queue_.push_back(GrantAnswered{grant.lease, grant.extents, std::nullopt});
}

void World::perform(const effect::SendSettle& effect) {
  settles.push_back(effect);
  if (workers_answer) answer_settle();
}

void World::perform(const effect::ClearExtents& effect) {
  std::optional<Error> refused;
  if (clear_fails) refused = Error{Errc::ConnectionLost, "no agent"};
  ExtentsCleared cleared;
  for (const ExtentId extent : effect.extents) {
    const bool never_sent = still_allocating.contains(extent);
    cleared.entries.push_back({extent, never_sent ? std::nullopt : refused, never_sent});
    if (never_sent) objects.erase(extent);
  }
  queue_.push_back(std::move(cleared));
}

void World::perform(const effect::SendUnmap& effect) {
  if (!workers_answer) return unmaps.push_back(effect);
  queue_.push_back(UnmapAnswered{effect.lease, std::nullopt});
}

void World::perform(const effect::SendPing& effect) {
  if (workers_answer_pings) queue_.push_back(PingAnswered{effect.worker});
}

void World::perform(const effect::SendReclaim& effect) {
  reclaims.push_back(effect);
}

void World::perform(const effect::SendFill& effect) {
  fills.push_back(effect);
}

void World::perform(const effect::BeginQuietWatch& effect) {
  quiet.watch(segments_.at(effect.worker)->reader, {effect.worker, effect.scope, effect.leases});
}

void World::perform(const effect::VerifyExtents& effect) {
  ExtentsVerified verified;
  for (const ExtentId extent : effect.extents) {
    const bool dirty = touched.contains(extent);
    const bool closed = !dirty || effect.close_anyway;
    verified.entries.push_back({extent, dirty ? 4096u : 0u, closed});
    if (closed) objects.erase(extent);
  }
  if (before_verify) queue_.push_back(*std::exchange(before_verify, std::nullopt));
  queue_.push_back(std::move(verified));
}

void World::perform(const effect::CreateRegion& effect) {
  if (regions_wait) return;
  std::optional<Error> refused;
  if (memory_fails) refused = Error{Errc::OutOfMemory, "no memory"};
  if (grant_unwritten_) refused = Error{Errc::DiskFull, "no room"};
  queue_.push_back(RegionLent{effect.lease, refused});
}

void World::perform(const effect::ShareRegion& effect) {
  std::optional<Error> refused;
  if (grant_unwritten_) refused = Error{Errc::DiskFull, "no room"};
  queue_.push_back(RegionLent{effect.lease, refused});
}

void World::perform(const effect::SealRegion& effect) {
  std::optional<Error> refused;
  if (seal_fails) refused = Error{Errc::StillWritable, "mapped"};
  queue_.push_back(RegionSealed{effect.region, refused});
}

void World::perform(const effect::ScrubRegion& effect) {
  queue_.push_back(RegionScrubbed{effect.region, region_bytes});
}

void World::perform(const effect::Reply& effect) {
  const bool first = answers.emplace(effect.call, effect.answer).second;
  if (!first) throw std::logic_error("a call was answered twice");
}

void World::perform(const effect::ReplyWhenJournaled& effect) {
  std::optional<Error> refused;
  if (unwritten_) refused = Error{Errc::DiskFull, "no room"};
  queue_.push_back(JournalWritten{effect.call, effect.answer, refused});
}

void World::perform(const effect::AppendEvent& effect) {
  log.append(effect.event, effect.at);
}

void World::perform(const effect::Warn& effect) {
  warnings.push_back(effect.message);
}

}  // namespace leasehold
