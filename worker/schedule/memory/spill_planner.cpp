#include "worker/schedule/memory/spill_planner.hpp"

#include <algorithm>
#include <ranges>

#include "common/expects.hpp"
#include "ipc/segment/gate_set.hpp"
#include "worker/schedule/memory/state_snapshots.hpp"

namespace leasehold {

void SpillPlanner::lend(const SpillLimits& limits) {
  tracker_.lend(limits);
  costs_ = SwapCosts(limits.first_bytes_per_second);
}

bool SpillPlanner::make_room(const Tenancy& tenancy, std::optional<double> row_ns) {
  // The spill's copies need a place in the gate set.
  if (running_.size() >= kMaxStepSequences) return false;
  if (tracker_.is_writing(tenancy.lease)) return true;
  if (!tracker_.may_write(now_)) return false;
  Sequence* sequence = choose(tenancy);
  if (sequence == nullptr) return false;
  const auto blocks = static_cast<std::uint32_t>(sequence->blocks.swapped().size());
  const SwapWork work{.copied_bytes = 2 * blocks * limits_.block_size_bytes,
                      .rows_to_repeat = work_of_first(sequence->blocks.committed())};
  if (is_measured_ && !costs_.is_swap_cheaper(work, row_ns)) {
    costs_.note_dropped();
    return false;
  }
  return tracker_.begin_write(*sequence, now_);
}

/// The swapped sequence of the lease that will be admitted last.
Sequence* SpillPlanner::choose(const Tenancy& tenancy) const {
  for (const PromptRequest& request : std::views::reverse(tenancy.waiting)) {
    const auto found = tenancy.swapped.find(request.engine_request_id);
    if (found == tenancy.swapped.end()) continue;
    Sequence& sequence = *found->second;
    if (sequence.blocks.state() == KvState::Swapped && !transfers_.has(sequence)) return &sequence;
  }
  return nullptr;
}

void SpillPlanner::plan_pieces() {
  for (Spill* spill : tracker_.moving()) {
    if (transfers_.has(*spill->sequence)) continue;
    if (spill->phase == Spill::Phase::Writing) {
      plan_staging(*spill);
    } else {
      plan_return(*spill);
    }
  }
}

/// The sequence is not running, so it uses a free stop slot and a free place in the gate set for
/// these copies.
void SpillPlanner::plan_staging(Spill& spill) {
  if (transfers_.is_gate_set_full()) return;
  Sequence& sequence = *spill.sequence;
  std::vector<SpillPiece> pieces = tracker_.take_pieces(spill);
  if (pieces.empty()) return;
  sequence.stop_slot = transfers_.free_stop_slot();
  std::vector<BlockCopy> copies;
  for (const SpillPiece& piece : pieces)
    copies.push_back(
        {.from = sequence.blocks.swapped()[piece.block], .to = {kStagingExtent, piece.buffer}});
  transfers_.add({&sequence, std::move(copies), spill.id, std::move(pieces)});
}

/// Blocks that are still cached are read too, because the stream must be decrypted in order, but
/// they are not copied.
void SpillPlanner::plan_return(Spill& spill) {
  Sequence& sequence = *spill.sequence;
  std::vector<SpillPiece> pieces = std::exchange(spill.arrived, {});
  const auto cached = static_cast<std::uint32_t>(sequence.blocks.cached().size());
  const auto is_cached = [cached](const SpillPiece& piece) { return piece.block < cached; };
  const auto rest = std::ranges::stable_partition(pieces, is_cached).begin();
  if (tracker_.returned(spill, {pieces.begin(), rest})) return finish_return(spill);
  pieces.erase(pieces.begin(), rest);
  if (!pieces.empty()) {
    const std::vector<BlockId> to = sequence.blocks.moved();
    std::vector<BlockCopy> copies;
    for (const SpillPiece& piece : pieces)
      copies.push_back({.from = {kStagingExtent, piece.buffer}, .to = to[piece.block]});
    transfers_.add({&sequence, std::move(copies), spill.id, std::move(pieces)});
  }
  tracker_.read_ahead(spill, now_);
}

void SpillPlanner::copied(const SwapTransfer& made) {
  Spill* spill = tracker_.find(*made.sequence);
  expects(spill != nullptr, "pieces belong to a spill");
  if (spill->phase == Spill::Phase::Writing) return tracker_.staged(*spill, made.pieces, now_);
  if (tracker_.returned(*spill, made.pieces)) finish_return(*spill);
}

void SpillPlanner::begin_return(Sequence& sequence, std::vector<PrefixId> chain) {
  Tenancy& tenancy = tenancies_.at(sequence.request.lease);
  sequence.blocks.begin_return(std::move(chain), tenancy.pool, tenancy.prefixes);
  Spill* spill = tracker_.find(sequence);
  expects(spill != nullptr, "a spilled sequence has a spill");
  tracker_.begin_read(*spill);
  if (sequence.blocks.cached().size() == moved_blocks(sequence.blocks)) finish_return(*spill);
}

void SpillPlanner::finish_return(Spill& spill) {
  note(spill, SpillEvent::Kind::Returned);
  spill.sequence->blocks.finish_return(true);
  tracker_.end(spill);
}

void SpillPlanner::answered(const std::vector<SpillAnswer>& answers, TimePoint now) {
  now_ = now;
  for (const SpillAnswer& answer : answers) {
    Spill* spill = tracker_.answered(answer, now);
    if (answer.job.kind == SpillJob::Kind::Clear) continue;
    if (answer.result) {
      costs_.note_copy(answer.duration, limits_.block_size_bytes);
      is_measured_ = true;
    }
    if (spill == nullptr) continue;
    if (!answer.result) {
      fail_spill(*spill, answer.result.error());
    } else if (spill->phase == Spill::Phase::Stored) {
      note(*spill, SpillEvent::Kind::Spilled);
      spill->sequence->blocks.spill(tenancies_.at(spill->lease).swap);
    }
  }
}

void SpillPlanner::check_timeouts(TimePoint now) {
  now_ = now;
  for (Spill* spill : tracker_.late(now_)) {
    fail_spill(*spill, {Errc::TimedOut,
                        "the disk of the spill file does not answer; check it, or "
                        "start the broker without --spill-dir"});
  }
}

/// After a failed write the blocks are still in swap. After a failed read the rows are computed
/// again, in the blocks that the sequence has, and are not charged again. `request.emitted` stays
/// as it was at the admission, because the token rules have already accepted the tokens emitted
/// since.
void SpillPlanner::fail_spill(Spill& spill, const Error& why) {
  Sequence& sequence = *spill.sequence;
  const bool was_writing = spill.phase == Spill::Phase::Writing;
  drop_transfers(sequence);
  note(spill, was_writing ? SpillEvent::Kind::WriteFailed : SpillEvent::Kind::ReadFailed, why);
  tracker_.end(spill);
  if (was_writing) return tracker_.pause(now_);
  sequence.request.charged = sequence.charged_if_stopped();
  sequence.blocks.finish_return(false);
}

void SpillPlanner::end(const Sequence& sequence) {
  if (Spill* spill = tracker_.find(sequence)) tracker_.end(*spill);
}

void SpillPlanner::abandon(const Sequence& sequence) {
  drop_transfers(sequence);
  end(sequence);
}

void SpillPlanner::drop_transfers(const Sequence& sequence) {
  for (const SwapTransfer& each : transfers_.drop(sequence)) {
    for (const SpillPiece& piece : each.pieces) tracker_.clear(each.spill, piece);
    if (each.state_of.value != 0)
      release_snapshot(each, tenancies_.at(sequence.request.lease).pool);
  }
}

void SpillPlanner::note(const Spill& spill, SpillEvent::Kind kind, std::optional<Error> why) {
  events_.push_back(
      {spill.sequence->request.engine_request_id, kind, spill.blocks(), std::move(why)});
}

}  // namespace leasehold
