// A broker dies, and the next one begins with what persists.
#include <unistd.h>

#include "broker/decide/deciders.hpp"
#include "broker/supervise/kept_slots.hpp"
#include "tests/simulation/adapters/adapter_judge.hpp"
#include "tests/simulation/agent_client.hpp"
#include "tests/simulation/model_broker.hpp"
#include "tests/simulation/model_worker.hpp"

namespace leasehold::simulation {
namespace {

constexpr Duration kGrace = std::chrono::seconds(3);

std::set<ProcessIdentity> exited_holders(const Machine& machine, const journal::Image& image) {
  std::set<ProcessIdentity> exited;
  for (const ProcessIdentity& holder : holder_processes(image)) {
    if (machine.process(holder.pid).is_dead()) exited.insert(holder);
  }
  return exited;
}

/// Planted: recovery trusts the journal where the table is newer.
void trust_journal(const journal::Image& image, LeaseTable& table) {
  for (const auto& [id, row] : image.leases) {
    const LeaseWord word = table.word(id.slot);
    const bool further = word.generation() == id.generation && word.state() > row.state;
    if (further) table.restore(id, row.state, row.reason);
  }
}

/// Planted: every adapter counts as filled.
void take_for_filled(State& state) {
  for (const LeaseId lease : state.leases.open_leases()) state.leases.at(lease).filled = true;
}

}  // namespace

/// After each transaction the audit records and the other rows agree about each extent.
void Broker::write(const std::vector<journal::Row>& rows) {
  testing::MemoryLedger& ledger = deps_.persistent.ledger;
  for (const journal::Row& row : rows) {
    journal::apply(deps_.persistent.journal, row);
    const bool is_lost = deps_.planted_bugs.erasure_unrecorded &&
                         std::holds_alternative<journal::LeaseErasedRow>(row);
    if (!is_lost) ledger.add(row);
  }
  const std::string wrong = ledger.mismatch(deps_.persistent.journal);
  if (!wrong.empty()) violated(wrong);
}

void Broker::on_death() {
  fiber_.reset();
  scrubs_.clear();
  if (agent_client_) agent_client_->end();
  deps_.judge.broker_died();
  deps_.adapters->broker_died();
}

Broker::StartupState Broker::recover_state(Dependencies deps, Broker& before) {
  const journal::Image& image = deps.persistent.journal;
  Facts facts{.now = deps.machine.clock.now(),
              .boot_id = image.boot_id,
              .exited_holders = exited_holders(deps.machine, image),
              .reattach_grace = kGrace};
  LeaseTable table =
      deps.persistent.store
          ? LeaseTable::adopt(UniqueFd(::dup(before.table.writable_fd().get()))).value()
          : LeaseTable::create(before.state.config.slot_count).value();
  if (deps.persistent.store) {
    if (deps.planted_bugs.journal_over_table) trust_journal(image, table);
    facts.table = kept_slots(table);
    facts.kept_regions = deps.persistent.regions;
    for (const auto& [id, link] : before.links_) {
      if (link.kept && link.segment != nullptr) facts.kept_workers.insert(id);
    }
  }
  for (const auto& [id, process] : worker_processes(image)) {
    if (!deps.machine.process(process.pid).is_dead()) continue;
    facts.exited_workers.push_back(exit_of(id));
  }
  if (!deps.persistent.store) deps.persistent.regions.clear();
  return {.recovered = leasehold::recover(image, facts, before.state.config).value(),
          .table = std::move(table),
          .kept_workers = std::move(facts.kept_workers)};
}

Broker::Broker(Dependencies deps, Broker& before)
    : Broker(deps, before, recover_state(deps, before)) {}

/// Worker segments first, then words, then what was decided; connections are served after that.
Broker::Broker(Dependencies deps, Broker& before, StartupState startup)
    : Process(Role::Broker),
      state(std::move(startup.recovered.state)),
      table(std::move(startup.table)),
      reader(TableReader::in_process(table)),
      deps_(deps),
      handling_(true),
      to_recover_(std::move(startup.recovered.effects)) {
  if (deps.planted_bugs.adapter_unfilled_kept) take_for_filled(state);
  restore_workers(before, startup.kept_workers);
  open_device();
  for (const Recovered::Word& word : startup.recovered.words) {
    table.restore(word.lease, word.to, word.reason);
  }
  deps_.judge.broker_started({.state = state, .words = startup.recovered.words, .table = table},
                             deps_.persistent.store);
  deps_.coverage.broker_restarted(deps_.persistent.store);
}

void Broker::restore_workers(Broker& before, const std::set<AttachmentId>& kept) {
  for (const auto& [id, worker] : state.workers.all()) {
    watched_[id] = &deps_.machine.process(worker.pid);
    workers_[id] = WorkerState::Lost;
    if (kept.contains(id)) links_[id].segment = before.links_.at(id).segment;
  }
}

/// Runs before any connection is served.
void Broker::recover() {
  if (!handling_) return;
  perform_all(to_recover_, *this);
  to_recover_.clear();
  observe_workers();
  for (const auto& [id, record] : state.extents.records()) {
    extents_[id.value] = record.state;
    (void)kind_of(id);
  }
  for (const auto& [id, region] : state.weights.regions()) regions_[id.value] = region.state;
  check_words();
  handling_ = false;
  receive(Tick{});
}

Result<void> Broker::take_memory(const Connection& from, const wire::LeaseRedeliver& message) {
  TRY(check_redelivery(state, from.id, message));
  for (const ExtentId extent : message.extents) {
    if (too_late_.contains(extent)) return fail(Errc::UntrustedSegment, "no longer expected");
  }
  for (const ExtentId extent : message.extents) deps_.judge.redelivered(extent);
  return {};
}

}  // namespace leasehold::simulation
