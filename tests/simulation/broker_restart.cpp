// A broker dies, and the next one begins with what outlived it.
#include <unistd.h>

#include "broker/decide/deciders.hpp"
#include "broker/supervise/kept_slots.hpp"
#include "tests/simulation/agent_line.hpp"
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

/// As if recovery took the journal's word for it where the table is further.
void believe_journal(const journal::Image& image, LeaseTable& table) {
  for (const auto& [id, row] : image.leases) {
    const LeaseWord word = table.word(id.slot);
    const bool further = word.generation() == id.generation && word.state() > row.state;
    if (further) table.restore(id, row.state, row.reason);
  }
}

}  // namespace

void Broker::on_death() {
  fiber_.reset();
  scrubs_.clear();
  if (agent_line_) agent_line_->end();
  around_.judge.broker_died();
}

Broker::Beginning Broker::begin_again(Surroundings around, Broker& before) {
  const journal::Image& image = around.estate.journal;
  Facts facts{.now = around.machine.clock.now(),
              .boot_id = image.boot_id,
              .exited_holders = exited_holders(around.machine, image),
              .reattach_grace = kGrace};
  LeaseTable table =
      around.estate.store
          ? LeaseTable::adopt(UniqueFd(::dup(before.table.writable_fd().get()))).value()
          : LeaseTable::create(before.state.config.slot_count).value();
  if (around.estate.store) {
    if (around.plants.journal_over_table) believe_journal(image, table);
    facts.table = kept_slots(table);
    facts.kept_regions = around.estate.regions;
    for (const auto& [id, link] : before.links_) {
      if (link.kept && link.line != nullptr) facts.kept_workers.insert(id);
    }
  }
  for (const auto& [id, process] : worker_processes(image)) {
    if (!around.machine.process(process.pid).is_dead()) continue;
    facts.exited_workers.push_back(exit_of(id));
  }
  if (!around.estate.store) around.estate.regions.clear();
  return {.recovered = leasehold::recover(image, facts, before.state.config).value(),
          .table = std::move(table),
          .kept_workers = std::move(facts.kept_workers)};
}

Broker::Broker(Surroundings around, Broker& before)
    : Broker(around, before, begin_again(around, before)) {}

/// Lines first, then words, then what was decided; whoever connects is heard after all that.
Broker::Broker(Surroundings around, Broker& before, Beginning beginning)
    : Process(Role::Broker),
      state(std::move(beginning.recovered.state)),
      table(std::move(beginning.table)),
      reader(TableReader::attach(table.reader_fd().value()).value()),
      around_(around),
      handling_(true),
      to_recover_(std::move(beginning.recovered.effects)) {
  take_up_workers(before, beginning.kept_workers);
  take_up_device();
  for (const Recovered::Word& word : beginning.recovered.words) {
    table.restore(word.lease, word.state, word.reason);
  }
  around_.judge.broker_began({.state = state, .words = beginning.recovered.words, .table = table},
                             around_.estate.store);
  around_.coverage.broker_restarted(around_.estate.store);
}

void Broker::take_up_workers(Broker& before, const std::set<AttachmentId>& kept) {
  for (const auto& [id, worker] : state.workers.all()) {
    watched_[id] = &around_.machine.process(worker.pid);
    workers_[id] = WorkerState::Lost;
    if (kept.contains(id)) links_[id].line = before.links_.at(id).line;
  }
}

/// Before anybody is heard.
void Broker::recover() {
  if (!handling_) return;
  perform_all(to_recover_, *this);
  to_recover_.clear();
  observe_workers();
  for (const auto& [id, record] : state.extents.records()) extents_[id.value] = record.state;
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
  for (const ExtentId extent : message.extents) around_.judge.redelivered(extent);
  return {};
}

}  // namespace leasehold::simulation
