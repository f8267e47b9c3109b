#include "worker/schedule/memory/spill_tracker.hpp"

#include <numeric>
#include <utility>

#include "common/expects.hpp"

namespace leasehold {

void SpillTracker::lend(const SpillLimits& limits) {
  expects(spills_.empty(), "spill space is lent once");
  limits_ = limits;
  slot_shares_ = FairShares<TenantId>(limits.slots);
  buffer_shares_ = FairShares<TenantId>(limits.buffers);
  free_buffers_.resize(limits.buffers);
  std::iota(free_buffers_.rbegin(), free_buffers_.rend(), 0u);
}

// --------------------------------------------------------------------------------------- spills

bool SpillTracker::begin_write(Sequence& sequence, TimePoint now) {
  expects(find(sequence) == nullptr, "a sequence has one spill");
  if (!may_write(now)) return false;
  Spill spill{.id = {ids_ + 1},
              .lease = sequence.request.lease,
              .tenant = sequence.request.tenant,
              .sequence = &sequence};
  const auto blocks = static_cast<std::uint32_t>(sequence.blocks.swapped().size());
  if (!take_slots(spill, blocks)) return false;
  ++ids_;
  spills_.emplace(spill.id, std::move(spill));
  return true;
}

bool SpillTracker::is_writing(LeaseId lease) const {
  return std::ranges::any_of(spills_, [lease](const auto& entry) {
    return entry.second.lease == lease && entry.second.phase == Spill::Phase::Writing;
  });
}

void SpillTracker::begin_read(Spill& spill) {
  expects(spill.phase == Spill::Phase::Stored, "blocks are read once all are written");
  spill.phase = Spill::Phase::Reading;
  spill.next = 0;
  spill.done = 0;
}

Spill* SpillTracker::find(const Sequence& sequence) {
  for (auto& [id, spill] : spills_)
    if (spill.sequence == &sequence) return &spill;
  return nullptr;
}

std::vector<Spill*> SpillTracker::moving() {
  std::vector<Spill*> moving;
  for (auto& [id, spill] : spills_) {
    const bool moves = spill.phase == Spill::Phase::Writing || spill.phase == Spill::Phase::Reading;
    if (moves) moving.push_back(&spill);
  }
  return moving;
}

std::vector<Spill*> SpillTracker::late(TimePoint now) {
  std::vector<Spill*> late = moving();
  const bool is_hung = at_disk_ > 0 && now - disk_since_ > limits_.timeout;
  std::erase_if(late, [&](const Spill* spill) {
    if (spill->at_disk > 0) return now - spill->progressed <= limits_.timeout;
    return !is_hung;
  });
  return late;
}

void SpillTracker::end(Spill& spill) {
  spill.phase = Spill::Phase::Ended;
  spill.sequence = nullptr;
  for (const SpillPiece& piece : std::exchange(spill.arrived, {}))
    add_job(SpillJob::Kind::Clear, spill, piece);
  forget_if_over(spill);
}

void SpillTracker::forget_if_over(const Spill& spill) {
  if (spill.phase != Spill::Phase::Ended || spill.buffers_held > 0) return;
  add_job(SpillJob::Kind::End, spill, {});
  auto node = spills_.extract(spill.id);
  release_slots(node.mapped());
}

// --------------------------------------------------------------------------------------- pieces

std::vector<SpillPiece> SpillTracker::take_pieces(Spill& spill) {
  std::vector<SpillPiece> pieces;
  while (spill.next < spill.blocks()) {
    const auto buffer = take_buffer(spill);
    if (!buffer) break;
    pieces.push_back({.block = spill.next++, .buffer = *buffer});
  }
  return pieces;
}

void SpillTracker::staged(Spill& spill, const std::vector<SpillPiece>& pieces, TimePoint now) {
  for (const SpillPiece& piece : pieces) add_disk_job(SpillJob::Kind::Write, spill, piece, now);
}

void SpillTracker::read_ahead(Spill& spill, TimePoint now) {
  for (const SpillPiece& piece : take_pieces(spill))
    add_disk_job(SpillJob::Kind::Read, spill, piece, now);
}

bool SpillTracker::returned(Spill& spill, const std::vector<SpillPiece>& pieces) {
  for (const SpillPiece& piece : pieces) add_job(SpillJob::Kind::Clear, spill, piece);
  spill.done += static_cast<std::uint32_t>(pieces.size());
  return spill.done == spill.blocks();
}

void SpillTracker::clear(SpillId id, const SpillPiece& piece) {
  add_job(SpillJob::Kind::Clear, spills_.at(id), piece);
}

Spill* SpillTracker::answered(const SpillAnswer& answer, TimePoint now) {
  Spill& spill = spills_.at(answer.job.block.stream);
  const SpillPiece piece{.block = answer.job.block.number, .buffer = answer.job.buffer};
  const bool has_ended = spill.phase == Spill::Phase::Ended;
  if (answer.job.kind != SpillJob::Kind::Clear) {
    --spill.at_disk;
    --at_disk_;
    spill.progressed = disk_since_ = now;
  }
  if (answer.job.kind == SpillJob::Kind::Read && answer.result) {
    if (has_ended) {
      add_job(SpillJob::Kind::Clear, spill, piece);
      return nullptr;
    }
    spill.arrived.push_back(piece);
  } else {
    release_buffer(spill, piece.buffer);
  }
  if (has_ended) {
    forget_if_over(spill);
    return nullptr;
  }
  if (answer.job.kind == SpillJob::Kind::Write && answer.result && ++spill.done == spill.blocks())
    spill.phase = Spill::Phase::Stored;
  return &spill;
}

void SpillTracker::add_disk_job(SpillJob::Kind kind, Spill& spill, const SpillPiece& piece,
                                TimePoint now) {
  if (spill.at_disk++ == 0) spill.progressed = now;
  if (at_disk_++ == 0) disk_since_ = now;
  add_job(kind, spill, piece);
}

void SpillTracker::add_job(SpillJob::Kind kind, const Spill& spill, const SpillPiece& piece) {
  jobs_.push_back({.kind = kind,
                   .lease = spill.lease,
                   .block = {.stream = spill.id,
                             .number = piece.block,
                             .is_last = piece.block + 1 == spill.blocks()},
                   .slot = spill.slots.empty() ? 0 : spill.slots.at(piece.block),
                   .buffer = piece.buffer,
                   .seal = nullptr});
}

// --------------------------------------------------------------------------------------- shares

std::optional<std::uint32_t> SpillTracker::take_buffer(Spill& spill) {
  if (free_buffers_.empty() || !buffer_shares_.may_take_more(spill.tenant)) return std::nullopt;
  buffer_shares_.take(spill.tenant);
  ++spill.buffers_held;
  const std::uint32_t buffer = free_buffers_.back();
  free_buffers_.pop_back();
  return buffer;
}

void SpillTracker::release_buffer(Spill& spill, std::uint32_t buffer) {
  free_buffers_.push_back(buffer);
  buffer_shares_.give_back(spill.tenant);
  --spill.buffers_held;
}

bool SpillTracker::take_slots(Spill& spill, std::uint32_t count) {
  while (spill.slots.size() < count && slot_shares_.may_take_more(spill.tenant)) {
    slot_shares_.take(spill.tenant);
    if (free_slots_.empty()) free_slots_.push_back(unused_slots_from_++);
    spill.slots.push_back(free_slots_.back());
    free_slots_.pop_back();
  }
  if (spill.slots.size() == count) return true;
  release_slots(spill);
  return false;
}

void SpillTracker::release_slots(Spill& spill) {
  if (spill.slots.empty()) return;
  slot_shares_.give_back(spill.tenant, spill.slots.size());
  free_slots_.insert(free_slots_.end(), spill.slots.begin(), spill.slots.end());
  spill.slots.clear();
}

}  // namespace leasehold
