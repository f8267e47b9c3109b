#include "tests/simulation/cell/host_broker.hpp"

#include "broker/supervise/kept_slots.hpp"

namespace leasehold::cell::simulation {
namespace {

constexpr const char* kBoot = "boot";
constexpr Duration kReattachGrace = std::chrono::seconds(5);

BrokerConfig small_broker() {
  return {.slot_count = 64,
          .capacity_bytes = 64ull << 20,
          .weights_capacity_bytes = 1ull << 20,
          .timeouts = {.fence = std::chrono::seconds(2)}};
}

Recovered recovered(const journal::Image& journal, const LeaseTable& table, TimePoint now) {
  Facts facts{.now = now, .boot_id = kBoot, .reattach_grace = kReattachGrace};
  facts.table = kept_slots(table);
  for (const auto& [id, row] : journal.workers) facts.kept_workers.insert(id);
  return recover(journal, facts, small_broker()).value();
}

}  // namespace

HostBroker::HostBroker(Links links)
    : state_(small_broker()),
      table_(LeaseTable::create(small_broker().slot_count).value()),
      links_(std::move(links)) {
  journal_.boot_id = kBoot;
}

HostBroker::HostBroker(HostBroker& before, TimePoint now)
    : HostBroker(recovered(before.journal_, before.table_, now), before, now) {}

HostBroker::HostBroker(Recovered recovered, HostBroker& before, TimePoint now)
    : state_(std::move(recovered.state)),
      table_(std::move(before.table_)),
      journal_(std::move(before.journal_)),
      segments_(std::move(before.segments_)),
      links_(std::move(before.links_)),
      next_call_(before.next_call_) {
  for (const auto& word : recovered.words) table_.restore(word.lease, word.to, word.reason);
  perform_all(recovered.effects, *this);
  post(Tick{}, now);
}

void HostBroker::stop(TimePoint now) {
  if (!stopped_at_) stopped_at_ = now;
}

void HostBroker::post(Event event, TimePoint now) {
  if (stopped_at_) {
    const Duration gap = now - *std::exchange(stopped_at_, std::nullopt);
    queue_.emplace_back(BrokerStalled{gap});
  }
  queue_.push_back(std::move(event));
  if (std::exchange(is_settling_, true)) return;
  settle(now);
  is_settling_ = false;
}

/// Answers are given last: their receivers may call again.
void HostBroker::settle(TimePoint now) {
  while (!queue_.empty() || !answered_.empty()) {
    while (!queue_.empty()) {
      const Event event = std::move(queue_.front());
      queue_.pop_front();
      perform_all(decide(state_, event, now), *this);
      if (!quiet_.is_waiting()) continue;
      auto proofs = quiet_.observe();
      if (!proofs.empty()) queue_.emplace_back(QuietObserved{std::move(proofs)});
    }
    for (auto& [done, answer] : std::exchange(answered_, {})) done(answer);
  }
}

std::vector<ExtentId> HostBroker::extents_of(LeaseId lease) const {
  const LeaseRecord* const record = state_.leases.find_open(lease);
  return record ? record->extents : std::vector<ExtentId>();
}

// ---------------------------------------------------------------- effects

void HostBroker::perform(const effect::Journal& effect) {
  for (const journal::Row& row : effect.batch.rows) apply(journal_, row);
}

void HostBroker::perform(const effect::PublishGrant& effect) {
  table_.grant(effect.lease, effect.deadline);
}

void HostBroker::perform(const effect::StoreWords& effect) {
  std::vector<LeaseTable::LeaseChange> changes;
  for (const auto& change : effect.changes)
    changes.push_back({change.lease, change.to, change.reason});
  table_.store_words(effect.worker, changes, effect.at);
}

void HostBroker::perform(const effect::SetDeadline& effect) {
  table_.set_deadline(effect.lease, effect.deadline);
}

void HostBroker::perform(const effect::SetDrainDeadline& effect) {
  table_.set_drain_deadline(effect.lease, effect.deadline);
}

void HostBroker::perform(const effect::BindWorker& effect) {
  segments_[effect.worker] =
      std::make_unique<WorkerSegmentReader>(WorkerSegmentReader::create().value());
}

void HostBroker::perform(const effect::ForgetWorker& effect) {
  quiet_.forget(effect.worker);
}

void HostBroker::perform(const effect::SendGrant& effect) {
  links_.send(effect.grant);
}

void HostBroker::perform(const effect::SendQuota& effect) {
  links_.send(effect.quota);
}

void HostBroker::perform(const effect::NotifyAgent& effect) {
  links_.notify(effect.agent, effect.changed);
}

void HostBroker::perform(const effect::SendUnmap& effect) {
  queue_.emplace_back(UnmapAnswered{effect.lease, std::nullopt});
}

void HostBroker::perform(const effect::SendPing& effect) {
  queue_.emplace_back(PingAnswered{effect.worker});
}

void HostBroker::perform(const effect::BeginQuietWatch& effect) {
  quiet_.watch(*segments_.at(effect.worker), {effect.worker, effect.scope, effect.leases});
}

void HostBroker::perform(const effect::VerifyExtents& effect) {
  ExtentsVerified verified;
  for (const ExtentId extent : effect.extents)
    verified.entries.push_back({.extent = extent, .allocated_bytes = 0, .closed = true});
  queue_.emplace_back(std::move(verified));
}

void HostBroker::perform(const effect::Reply& effect) {
  auto waiting = answers_.extract(effect.call);
  if (!waiting.empty()) answered_.emplace_back(std::move(waiting.mapped()), effect.answer);
}

void HostBroker::perform(const effect::ReplyWhenJournaled& effect) {
  queue_.emplace_back(JournalWritten{effect.call, effect.answer, std::nullopt});
}

}  // namespace leasehold::cell::simulation
