// The part of Scheduler that moves swapped blocks to the spill file and back.
#include <algorithm>
#include <ranges>
#include <utility>

#include "common/expects.hpp"
#include "worker/schedule/scheduler.hpp"

namespace leasehold {

void Scheduler::lend_spill(const SpillLimits& limits) {
  spills_.lend(limits);
  spill_costs_ = SwapCosts(limits.first_bytes_per_second);
}

/// Makes room in the lease's swap pool. Returns true when a spill is in progress, so that the
/// victim can wait for its swap blocks. The first spill is made regardless of cost, to measure the
/// file's speed.
bool Scheduler::spill_one(Tenancy& tenancy) {
  // The spill's copies need a place in the gate set.
  if (running_.size() >= kMaxStepSequences) return false;
  if (spills_.is_writing(tenancy.lease)) return true;
  if (!spills_.may_write(now_)) return false;
  Sequence* sequence = choose_spilled(tenancy);
  if (sequence == nullptr) return false;
  const std::uint32_t blocks = sequence->blocks.committed_blocks();
  const SwapWork work{.copied_bytes = 2 * blocks * limits_.block_size_bytes,
                      .rows_to_repeat = work_of_first(sequence->blocks.committed())};
  if (is_spill_measured_ && !spill_costs_.is_swap_cheaper(work, prefill_limit_.row_ns())) {
    spill_costs_.note_dropped();
    return false;
  }
  return spills_.begin_write(*sequence, now_);
}

/// The swapped sequence of the lease that will be admitted last.
Sequence* Scheduler::choose_spilled(const Tenancy& tenancy) const {
  for (const PromptRequest& request : std::views::reverse(tenancy.waiting)) {
    const auto found = tenancy.swapped.find(request.engine_request_id);
    if (found == tenancy.swapped.end()) continue;
    Sequence& sequence = *found->second;
    if (sequence.blocks.state() == KvState::Swapped && !has_transfer(sequence)) return &sequence;
  }
  return nullptr;
}

/// Lists the blocks to copy between the pools and staging in this step.
void Scheduler::plan_pieces() {
  for (Spill* spill : spills_.moving()) {
    if (has_transfer(*spill->sequence)) continue;
    if (spill->phase == Spill::Phase::Writing) {
      plan_staging(*spill);
    } else {
      plan_return(*spill);
    }
  }
}

/// The sequence is not running, so it uses a free stop slot and a free place in the gate set for
/// these copies.
void Scheduler::plan_staging(Spill& spill) {
  const auto leaving = std::ranges::count_if(
      transfers_, [this](const SwapTransfer& each) { return !running_.contains(each.sequence); });
  if (running_.size() + static_cast<std::size_t>(leaving) >= kMaxStepSequences) return;
  Sequence& sequence = *spill.sequence;
  std::vector<SpillPiece> pieces = spills_.take_pieces(spill);
  if (pieces.empty()) return;
  sequence.stop_slot = free_stop_slot();
  std::vector<BlockCopy> copies;
  for (const SpillPiece& piece : pieces)
    copies.push_back(
        {.from = sequence.blocks.swapped()[piece.block], .to = {kStagingExtent, piece.buffer}});
  transfers_.push_back({&sequence, std::move(copies), spill.id, std::move(pieces)});
}

/// Blocks that are still cached are read too, because the stream must be decrypted in order, but
/// they are not copied.
void Scheduler::plan_return(Spill& spill) {
  Sequence& sequence = *spill.sequence;
  std::vector<SpillPiece> pieces = std::exchange(spill.arrived, {});
  const auto cached = static_cast<std::uint32_t>(sequence.blocks.cached().size());
  const auto is_cached = [cached](const SpillPiece& piece) { return piece.block < cached; };
  const auto rest = std::ranges::stable_partition(pieces, is_cached).begin();
  if (spills_.returned(spill, {pieces.begin(), rest})) return finish_return(spill);
  pieces.erase(pieces.begin(), rest);
  if (!pieces.empty()) {
    std::vector<BlockCopy> copies;
    for (const SpillPiece& piece : pieces)
      copies.push_back(
          {.from = {kStagingExtent, piece.buffer}, .to = sequence.blocks.blocks()[piece.block]});
    transfers_.push_back({&sequence, std::move(copies), spill.id, std::move(pieces)});
  }
  spills_.read_ahead(spill, now_);
}

void Scheduler::pieces_copied(const SwapTransfer& made) {
  Spill* spill = spills_.find(*made.sequence);
  expects(spill != nullptr, "pieces belong to a spill");
  if (spill->phase == Spill::Phase::Writing) return spills_.staged(*spill, made.pieces, now_);
  if (spills_.returned(*spill, made.pieces)) finish_return(*spill);
}

void Scheduler::finish_return(Spill& spill) {
  note_spill(*spill.sequence, SpillEvent::Kind::Returned, spill.blocks());
  spill.sequence->blocks.finish_return(true);
  spills_.end(spill);
}

void Scheduler::begin_return(Sequence& sequence, std::vector<PrefixId> chain) {
  Tenancy& tenancy = tenancy_of(sequence);
  sequence.blocks.begin_return(std::move(chain), tenancy.pool, tenancy.prefixes);
  Spill* spill = spills_.find(sequence);
  expects(spill != nullptr, "a spilled sequence has a spill");
  spills_.begin_read(*spill);
  if (sequence.blocks.cached().size() == sequence.blocks.committed_blocks()) finish_return(*spill);
}

void Scheduler::spill_answered(const std::vector<SpillAnswer>& answers, TimePoint now) {
  now_ = now;
  for (const SpillAnswer& answer : answers) {
    Spill* spill = spills_.answered(answer, now);
    if (answer.job.kind == SpillJob::Kind::Clear) continue;
    if (answer.result) {
      spill_costs_.note_copy(answer.duration, limits_.block_size_bytes);
      is_spill_measured_ = true;
    }
    if (spill == nullptr) continue;
    if (!answer.result) {
      fail_spill(*spill, answer.result.error());
    } else if (spill->phase == Spill::Phase::Stored) {
      note_spill(*spill->sequence, SpillEvent::Kind::Spilled, spill->blocks());
      spill->sequence->blocks.spill(tenancy_of(*spill->sequence).swap);
    }
  }
}

void Scheduler::check_spill_timeouts() {
  for (Spill* spill : spills_.late(now_)) {
    fail_spill(*spill, {Errc::TimedOut,
                        "the disk of the spill file does not answer; check it, or "
                        "start the broker without --spill-dir"});
  }
}

/// After a failed write the blocks are still in swap. After a failed read the rows are computed
/// again, in the blocks that the sequence has, and are not charged again. `request.emitted` stays
/// as it was at the admission, because the token rules have already accepted the tokens emitted
/// since.
void Scheduler::fail_spill(Spill& spill, const Error& why) {
  Sequence& sequence = *spill.sequence;
  const bool was_writing = spill.phase == Spill::Phase::Writing;
  drop_transfers(sequence);
  note_spill(sequence, was_writing ? SpillEvent::Kind::WriteFailed : SpillEvent::Kind::ReadFailed,
             spill.blocks(), why);
  spills_.end(spill);
  if (was_writing) return spills_.pause(now_);
  sequence.request.charged = sequence.charged_if_stopped();
  sequence.blocks.finish_return(false);
}

/// Ends the sequence's spill, if it has one.
void Scheduler::end_spill(const Sequence& sequence) {
  if (Spill* spill = spills_.find(sequence)) spills_.end(*spill);
}

void Scheduler::note_spill(const Sequence& sequence, SpillEvent::Kind kind, std::uint32_t blocks,
                           std::optional<Error> why) {
  spill_events_.push_back({sequence.request.engine_request_id, kind, blocks, std::move(why)});
}

}  // namespace leasehold
