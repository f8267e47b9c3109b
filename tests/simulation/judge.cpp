#include "tests/simulation/judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "tests/simulation/coverage.hpp"
#include "tests/simulation/model_worker.hpp"

namespace leasehold::simulation {

thread_local Running running_schedule;
bool expect_violation = false;
std::string running_options;
bool tracing = false;

void trace(const std::string& line) {
  std::printf("%5llu  %s\n", static_cast<unsigned long long>(running_schedule.machine->step),
              line.c_str());
}

void violated(const std::string& what) {
  const std::uint64_t step = running_schedule.machine ? running_schedule.machine->step : 0;
  std::printf(
      "violation in schedule %llu of its thread, step %llu: %s\nrun again with SEED=%llu%s\n",
      static_cast<unsigned long long>(running_schedule.schedule),
      static_cast<unsigned long long>(step), what.c_str(),
      static_cast<unsigned long long>(running_schedule.seed), running_options.c_str());
  std::fflush(stdout);
  std::_Exit(expect_violation ? 0 : 1);
}

Judge::Lease& Judge::at(LeaseId lease) {
  const auto found = slots_.find(lease.slot);
  if (found == slots_.end() || found->second.id != lease) {
    violated(fmt::format("lease {} is not the one in its slot", to_string(lease)));
  }
  return found->second;
}

void Judge::granted(LeaseId lease, AttachmentId worker, bool engine) {
  Lease& slot = slots_[lease.slot];
  if (slot.id.generation >= lease.generation) {
    violated(fmt::format("generation of {} did not grow: the slot had {}", to_string(lease),
                         to_string(slot.id)));
  }
  if (slot.id.generation != 0 && slot.state != LeaseState::Fenced) {
    violated(fmt::format("{} granted before {} was fenced", to_string(lease), to_string(slot.id)));
  }
  slot = Lease{.id = lease, .worker = worker, .engine = engine};
  if (tracing) trace(fmt::format("{} granted on attachment {}", to_string(lease), worker.value));
}

void Judge::word_stored(LeaseId lease, LeaseState to) {
  Lease& slot = at(lease);
  if (to == LeaseState::Revoked && !slot.orphaned) slot.word_stored_at = machine_->step;
  if (to == LeaseState::Fenced) check_no_unit_in(slot);
  slot.state = to;
  if (tracing) trace(fmt::format("{} becomes {}", to_string(lease), name(to)));
}

void Judge::check_no_unit_in(const Lease& lease) const {
  const auto worker = workers_.find(lease.worker);
  if (worker == workers_.end() || worker->second->is_dead()) return;
  for (const UnitState* unit : worker->second->units()) {
    if (unit->open && std::ranges::find(unit->leases, lease.id) != unit->leases.end()) {
      violated(fmt::format("lease {} was fenced while a unit ran on it", to_string(lease.id)));
    }
  }
}

void Judge::fenced(LeaseId lease, std::string_view proof) {
  const Lease& slot = at(lease);
  const auto worker = workers_.find(slot.worker);
  const bool lives = worker != workers_.end() && !worker->second->is_dead();
  if (proof == "ProcessExit" && lives) {
    violated(
        fmt::format("{} was fenced by the exit of a worker that is running", to_string(lease)));
  }
  if (proof == "LaunchQuiet" && card_ != nullptr) {
    violated(
        fmt::format("{} was fenced by quiet gates, but its card may still work", to_string(lease)));
  }
  if (proof == "NeverMapped" && slot.sent) {
    violated(
        fmt::format("{} was fenced as never mapped, but its grant was sent", to_string(lease)));
  }
}

void Judge::unit_opened(UnitState& unit, Touches touches, std::vector<LeaseId> leases) {
  unit.open = true;
  unit.touches = touches;
  unit.leases = std::move(leases);
  for (const LeaseId lease : unit.leases) {
    const auto found = slots_.find(lease.slot);
    if (found == slots_.end()) violated("a unit ran for a lease that was never granted");
    const Lease& slot = found->second;
    if (slot.expired_at != 0 && unit.called_at > slot.expired_at) {
      violated(fmt::format("a unit begun at step {} ran for {}, expired at step {}", unit.called_at,
                           to_string(lease), slot.expired_at));
    }
    const bool flipped = slot.id != lease || slot.word_stored_at != 0;
    if (!flipped) continue;
    // Only the unit that was at the gate when the word was revoked may still run.
    if (slot.id != lease || unit.called_at > slot.word_stored_at) {
      violated(fmt::format("a unit begun at step {} ran for {}, revoked at step {}", unit.called_at,
                           to_string(lease), slot.word_stored_at));
    }
    if (slot.state == LeaseState::Fenced) {
      violated(fmt::format("a unit ran for {} after its fence", to_string(lease)));
    }
  }
}

void Judge::touched(const Worker& worker, const UnitState& unit, LeaseId lease, ExtentId extent) {
  if (!unit.open || unit.touches != Touches::TenantMemory)
    violated("memory was touched outside a unit");
  if (at(lease).state == LeaseState::Fenced) {
    violated(
        fmt::format("extent {} of {} touched after the fence", extent.value, to_string(lease)));
  }
  Object& object = objects_.at(extent);
  if (object.lease != lease) violated("a unit touched an extent of another lease");
  if (std::ranges::find(object.mappers, &worker) == object.mappers.end()) {
    violated(fmt::format("extent {} touched after it was unmapped", extent.value));
  }
  object.allocated = true;
}

void Judge::mapped(const Worker& worker, ExtentId extent) {
  if (tracing) trace(fmt::format("extent {} mapped", extent.value));
  Object& object = objects_.at(extent);
  if (std::ranges::find(object.mappers, &worker) != object.mappers.end()) return;
  if (is_on_card(object)) return import(worker, object);
  object.mappers.push_back(&worker);
  object.allocated = true;  // prefaulted
}

void Judge::unmapped(const Worker& worker, ExtentId extent) {
  if (tracing) trace(fmt::format("extent {} unmapped", extent.value));
  Object& object = objects_.at(extent);
  if (is_on_card(object)) return release_import(worker, object);
  std::erase(object.mappers, &worker);
}

void Judge::died(const Worker& worker) {
  if (card_ != nullptr) died_on_card(worker);
  for (auto& [id, object] : objects_) std::erase(object.mappers, &worker);
  note_worker_death(worker);
}

void Judge::notified_expired(LeaseId lease) {
  Lease& slot = slots_[lease.slot];
  if (slot.id == lease && slot.expired_at == 0) slot.expired_at = machine_->step;
}

// ------------------------------------------------------------------------------------------
// restart of a broker

void Judge::broker_died() {
  ceiling_at_death_ = highest_ceiling();
  for (auto& [id, object] : objects_) object.open = false;
  note_broker_death();
}

void Judge::broker_started(const BrokerStartup& started, bool table_kept) {
  for (auto& [number, slot] : slots_) check_word(slot, {number, table_kept}, started);
  for (const Recovered::Word& word : started.words) enter(word, started.state);
  for (const auto& [id, object] : objects_) {
    if (!object.mappers.empty() && started.state.extents.find(id) == nullptr) {
      violated(fmt::format("extent {} is mapped, but the next broker does not account for it",
                           id.value));
    }
  }
}

/// Compares the slot's word before the broker died with what the next broker made of it.
void Judge::check_word(Lease& lease, Slot slot, const BrokerStartup& started) {
  const LeaseWord word = started.table.word(slot.number);
  const bool table_kept = slot.table_kept;
  if (word.generation() < lease.id.generation) {
    if (table_kept)
      violated(fmt::format("the word of {} went back to an earlier state", to_string(lease.id)));
    if (lease.state == LeaseState::Fenced) return;
    const auto worker = workers_.find(lease.worker);
    const bool lives = worker != workers_.end() && !worker->second->is_dead();
    if (lease.sent && lives) {
      violated(
          fmt::format("a worker has {}, which the new broker does not know", to_string(lease.id)));
    }
    // It was never sent, or was fenced in the journal before the broker could report that.
    lease = {};
    return;
  }
  if (word.generation() > lease.id.generation) return;
  if (!table_kept) {
    orphan(lease);  // no worker reads the new word; no lease stays Live there
    const bool fenced = word.state() == LeaseState::Fenced && lease.state != LeaseState::Fenced;
    if (fenced) word_stored(lease.id, LeaseState::Fenced);
    return;
  }
  // A fence is reported before its store, and the broker may die between: then the books are newer.
  const LeaseRecord* record = started.state.leases.find_open(lease.id);
  const bool known =
      lease.state == LeaseState::Fenced && (record == nullptr || !record->is(LeaseState::Live));
  if (word.state() == LeaseState::Live && lease.state != LeaseState::Live && !known) {
    violated(fmt::format("{} is Live again after a restart", to_string(lease.id)));
  }
  if (word.state() > lease.state) word_stored(lease.id, word.state());
}

/// A lease that was journaled, but whose word was never stored in the current table.
void Judge::enter(const Recovered::Word& word, const State& state) {
  Lease& slot = slots_[word.lease.slot];
  if (slot.id == word.lease) return;
  if (slot.id.generation > word.lease.generation) {
    violated(fmt::format("{} is open, but {} was granted later in its slot", to_string(word.lease),
                         to_string(slot.id)));
  }
  const LeaseRecord* record = state.leases.find_open(word.lease);
  slot = Lease{.id = word.lease,
               .worker = record == nullptr ? AttachmentId{} : record->worker(),
               .engine = record != nullptr && record->scope == wire::LeaseScope::Engine,
               .state = word.to};
}

void Judge::taint(ExtentId extent) {
  Object& object = objects_.at(extent);
  if (is_on_card(object)) {
    object.falsely_unmapped = true;
    object.returned = true;
    return coverage_->happened(CardEvent::FalseUnmapReport);
  }
  object.tainted = true;
  object.allocated = true;
}

void Judge::object_made(ExtentId extent, const wire::LeaseGrant& grant) {
  const auto [found, fresh] = objects_.try_emplace(
      extent, Object{.lease = grant.lease, .tenant = grant.tenant, .pool = grant.pool});
  if (found->second.lease != grant.lease) adopted(found->second, grant);
  if (found->second.pool != grant.pool) violated("an extent of one pool was granted in another");
  if (fresh) check_capacity(grant.pool);
}

void Judge::adopted(Object& object, const wire::LeaseGrant& grant) {
  if (object.tenant != grant.tenant) violated("an extent of one tenant was granted to another");
  if (object.pool != MemoryPool::Kv || card_ != nullptr)
    violated("only KV memory of the machine is adopted");
  if (!object.open) violated("memory was adopted that the broker does not have");
  if (!object.mappers.empty()) violated("memory was adopted while a worker maps it");
  const Lease& slot = slots_[object.lease.slot];
  if (slot.id == object.lease && slot.state != LeaseState::Fenced)
    violated(fmt::format("memory of {} was adopted before its fence", to_string(object.lease)));
  note_adoption(object, at(grant.lease));
  object.lease = grant.lease;
}

/// All existing bytes of a pool, by any holder, fit its capacity: granted memory was really free.
void Judge::check_capacity(MemoryPool pool) const {
  std::uint64_t exist = 0;
  for (const auto& [id, object] : objects_) {
    if (object.pool == pool && (object.open || !object.mappers.empty())) ++exist;
  }
  const std::uint64_t capacity = pool == MemoryPool::Kv ? capacity_extents_ : swap_extents_;
  if (exist > capacity) {
    violated(
        fmt::format("{} extents of {} exist, the capacity is {}", exist, name(pool), capacity));
  }
}

void Judge::punched(ExtentId extent) {
  const auto found = objects_.find(extent);
  if (found == objects_.end() || !found->second.open) return;
  found->second.allocated = found->second.tainted;
  found->second.record = {};
}

std::uint64_t Judge::verified(ExtentId extent, bool close_anyway) {
  const auto found = objects_.find(extent);
  if (found == objects_.end() || !found->second.open) return 0;  // never made, or not delivered
  found->second.open = found->second.allocated && !close_anyway;
  return found->second.allocated ? 4096 : 0;
}

void Judge::freed(ExtentId extent) {
  const auto found = objects_.find(extent);
  if (found == objects_.end()) return;
  if (!found->second.mappers.empty()) {
    violated(fmt::format("extent {} is free while a worker maps it", extent.value));
  }
  if (is_on_card(found->second)) return freed_on_card(extent, found->second);
  if (found->second.tainted && found->second.open)
    violated("memory that was touched after its fence became free");
  if (found->second.allocated && found->second.open)
    violated(fmt::format("extent {} became free, but is not zero", extent.value));
}

Request& Judge::submitted(LeaseId lease, const Process& holder, const Process& worker,
                          const Connection& stream) {
  if (tracing) trace(fmt::format("{} submitted", to_string(lease)));
  requests_.push_back({.id = requests_.size() + 1,
                       .lease = lease,
                       .holder = &holder,
                       .worker = &worker,
                       .stream = &stream});
  return requests_.back();
}

void Judge::token_emitted(const Request& request, const CommitTime& commit) {
  const Lease& lease = at(request.lease);
  if (lease.word_stored_at != 0 && lease.word_stored_at < commit.begun) {
    violated(fmt::format("a token of {} was emitted by a commit that started after its revocation",
                         to_string(request.lease)));
  }
  check_ceiling(request, commit.decided_at);
  if (tracing) trace(fmt::format("token for {}", to_string(request.lease)));
  if (request.ends != 0) violated("a token was emitted after its request had ended");
}

void Judge::ended(Request& request) {
  if (tracing) trace(fmt::format("request {} of {} ends", request.id, to_string(request.lease)));
  if (++request.ends > 1) {
    violated(fmt::format("request {} of {} ended twice", request.id, to_string(request.lease)));
  }
}

void Judge::at_rest() const {
  for (const Request& request : requests_) {
    const auto slot = slots_.find(request.lease.slot);
    const bool live = slot->second.id == request.lease && slot->second.state == LeaseState::Live;
    const bool heard =
        request.holder->is_running() && request.worker->is_running() && request.stream->is_open();
    if (!live && request.accepted && heard && request.ends != 1) {
      violated(
          fmt::format("the holder of {} was never notified of its end", to_string(request.lease)));
    }
  }
}

}  // namespace leasehold::simulation
