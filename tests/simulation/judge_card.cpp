// The judge of memory on a card: checks holders, content, and the kernels that reach it.
#include <fmt/format.h>

#include <algorithm>

#include "tests/simulation/card_stream.hpp"
#include "tests/simulation/coverage.hpp"
#include "tests/simulation/judge.hpp"
#include "tests/simulation/model_worker.hpp"

namespace leasehold::simulation {

// ------------------------------------------------------------------------------------- memory

void Judge::lent(const Lent& lent) {
  if (tracing) {
    trace(fmt::format("extent {} lent to {}, memory {}", lent.extent.value, to_string(lent.lease),
                      lent.memory));
  }
  if (!card_->at(lent.memory).zero) {
    violated(fmt::format("extent {} was lent to {} with data of an earlier lease in it",
                         lent.extent.value, to_string(lent.lease)));
  }
  for (const auto& [id, other] : objects_) {
    if (id != lent.extent && other.memory == lent.memory) violated("two extents share one memory");
  }
  Object& object = objects_[lent.extent];
  if (object.memory && object.memory != lent.memory) violated("an extent moved to another memory");
  for (const Worker* mapper : object.mappers) {
    if (mapper != lent.worker) {
      violated(fmt::format("extent {} went to another worker while the first one is running",
                           lent.extent.value));
    }
  }
  if (object.memory) check_lent_before(object, lent);
  object.lease = lent.lease;
  object.memory = lent.memory;
  object.returned = true;  // until its worker imports it
  check_card_capacity();
}

/// No memory is lent to two leases at once: the earlier lease is fenced, or its worker returned it.
void Judge::check_lent_before(const Object& object, const Lent& lent) const {
  const auto slot = slots_.find(object.lease.slot);
  const bool over = slot == slots_.end() || slot->second.id != object.lease ||
                    slot->second.state == LeaseState::Fenced;
  if (object.lease != lent.lease && !over && !object.returned) {
    violated(fmt::format("extent {} was lent twice", lent.extent.value));
  }
}

/// What the agent has lent, and what running workers still have of earlier agents.
void Judge::check_card_capacity() const {
  std::uint64_t exist = 0;
  for (const auto& [id, object] : objects_) {
    if (!object.memory) continue;
    if (card_->at(*object.memory).agent != nullptr || !object.mappers.empty()) ++exist;
  }
  if (exist > capacity_extents_) {
    violated(
        fmt::format("{} extents exist on the card, the capacity is {}", exist, capacity_extents_));
  }
}

void Judge::import(const Worker& worker, Object& object) {
  object.mappers.push_back(&worker);
  object.returned = false;
  card_->import(*object.memory);
}

/// A worker that keeps memory after it reported an unmap has it until it exits.
void Judge::release_import(const Worker& worker, Object& object) {
  if (object.falsely_unmapped) return;
  object.returned = true;
  if (std::erase(object.mappers, &worker) != 0) card_->unmap(*object.memory);
}

void Judge::died_on_card(const Worker& worker) {
  for (auto& [id, object] : objects_) {
    if (!is_on_card(object)) continue;
    if (std::erase(object.mappers, &worker) != 0) card_->importer_exited(*object.memory);
    object.falsely_unmapped = object.falsely_unmapped && !object.mappers.empty();
  }
}

void Judge::quarantined(ExtentId extent) {
  const auto found = objects_.find(extent);
  if (card_ == nullptr || found == objects_.end() || !found->second.memory) return;
  const std::size_t memory = *found->second.memory;
  if (card_->at(memory).exiting == 0) ++quarantined_instead_;
  card_->give_up(memory);
}

void Judge::released_by_operator(ExtentId extent) {
  if (const auto found = objects_.find(extent); found != objects_.end()) {
    found->second.released_by_operator = true;
  }
}

/// The driver's figure covers the whole card: other memory returned meanwhile hides what is kept,
/// and an agent that has ended cannot be queried.
void Judge::freed_on_card(ExtentId extent, const Object& object) {
  if (!object.memory || object.released_by_operator) return;
  if (card_->at(*object.memory).exiting == 0) return;
  card_->give_up(*object.memory);
  const bool is_exact = !card_->free_figure_unreliable() && card_->agents_lost() == 0;
  if (++kept_and_free_ > quarantined_instead_ && is_exact) {
    violated(fmt::format("extent {} is free, but the driver has not released it", extent.value));
  }
}

// ------------------------------------------------------------------------------------ kernels

void Judge::kernel_began(const Launch& launch) const {
  const auto slot = slots_.find(launch.engine.slot);
  const bool fenced = slot == slots_.end() || slot->second.id != launch.engine ||
                      slot->second.state == LeaseState::Fenced;
  if (fenced) {
    violated(fmt::format("a kernel read weights after the fence of {}", to_string(launch.engine)));
  }
}

void Judge::kernel_touches(const Worker& worker, Launch& launch, const LaunchRow& row) {
  const auto found = slots_.find(row.lease.slot);
  const bool fenced = found == slots_.end() || found->second.id != row.lease ||
                      found->second.state == LeaseState::Fenced;
  if (fenced) violated(fmt::format("a kernel worked for {} after its fence", to_string(row.lease)));
  Lease& lease = found->second;
  if (lease.word_stored_at != 0) count_after_flip(launch, lease);
  for (const ExtentId extent : row.extents) {
    Object& object = objects_.at(extent);
    if (object.lease != row.lease) violated("a kernel touched an extent of another lease");
    if (std::ranges::find(object.mappers, &worker) == object.mappers.end()) {
      violated(fmt::format("a kernel touched extent {} after it was unmapped", extent.value));
    }
    object.allocated = true;
    if (object.memory) card_->write(*object.memory);
  }
}

/// Only launches that were in the stream or at the gate when the word was revoked.
void Judge::count_after_flip(Launch& launch, Lease& lease) const {
  if (launch.called_at > lease.word_stored_at) {
    violated(fmt::format("a kernel launched at step {} worked for {}, revoked at step {}",
                         launch.called_at, to_string(lease.id), lease.word_stored_at));
  }
  if (std::ranges::find(launch.worked_for, lease.id) != launch.worked_for.end()) return;
  launch.worked_for.push_back(lease.id);
  coverage_->happened(CardEvent::RanAfterFlip);
  if (++lease.launches_after_flip > kLaunchesInFlight) {
    violated(fmt::format("{} launches worked for {} after its revocation",
                         lease.launches_after_flip, to_string(lease.id)));
  }
}

}  // namespace leasehold::simulation
