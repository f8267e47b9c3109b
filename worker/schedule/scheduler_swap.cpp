// The part of Scheduler that moves blocks of preempted sequences to swap and back.
#include <algorithm>
#include <utility>

#include "common/expects.hpp"
#include "worker/schedule/scheduler.hpp"

namespace leasehold {

Scheduler::SwapChoice Scheduler::choose_swap(const Sequence& victim) {
  if (victim.blocks.state() != KvState::Active) return SwapChoice::Drop;
  if (victim.shared_lease) return SwapChoice::Drop;  // its first blocks belong to the shared lease
  if (!swap_costs_.is_swap_cheaper(swap_work(victim), prefill_limit_.row_ns())) {
    swap_costs_.note_dropped();
    return SwapChoice::Drop;
  }
  Tenancy& tenancy = tenancy_of(victim);
  const std::uint32_t needed = victim.blocks.committed_blocks();
  const std::uint32_t free = tenancy.swap.free_blocks();
  if (needed <= free) return SwapChoice::SwapOut;
  tenancy.swap_blocks_wanted = std::max(tenancy.swap_blocks_wanted, needed - free);
  return !tenancy.swap_refused || spill_one(tenancy) ? SwapChoice::Await : SwapChoice::Drop;
}

/// Leaves out blocks that other sequences use: they stay cached, so they are neither computed again
/// nor copied back.
SwapWork Scheduler::swap_work(const Sequence& victim) const {
  const PrefixIndex& prefixes = tenancies_.at(victim.request.lease).prefixes;
  const auto has_other_users = [&](PrefixId id) { return prefixes.references(id) > 1; };
  const auto shared =
      static_cast<std::uint32_t>(std::ranges::count_if(victim.blocks.cached(), has_other_users));
  const std::uint32_t blocks = victim.blocks.committed_blocks();
  const std::uint32_t copies = blocks + (blocks - shared);
  const std::uint32_t from = shared * limits_.tokens_per_block;
  return {.copied_bytes = copies * limits_.block_size_bytes,
          .rows_to_repeat = work_of_rows(from, victim.blocks.committed() - from)};
}

/// Returns the number of blocks that move to swap. The record contains block ids, so it is written
/// anew after the swap-in.
std::uint32_t Scheduler::swap_out(Sequence& victim) {
  Tenancy& tenancy = tenancy_of(victim);
  std::vector<BlockCopy> copies =
      victim.blocks.swap_out(tenancy.pool, tenancy.swap, tenancy.prefixes);
  victim.record = {};
  victim.request.rebound_from.reset();  // the rebind is already reported
  const auto count = static_cast<std::uint32_t>(copies.size());
  transfers_.push_back({&victim, std::move(copies)});
  return count;
}

void Scheduler::swap_in(Sequence& sequence, std::vector<PrefixId> chain) {
  if (sequence.blocks.state() == KvState::Spilled) return begin_return(sequence, std::move(chain));
  end_spill(sequence);
  Tenancy& tenancy = tenancy_of(sequence);
  std::vector<BlockCopy> copies =
      sequence.blocks.swap_in(std::move(chain), tenancy.pool, tenancy.swap, tenancy.prefixes);
  if (!copies.empty()) transfers_.push_back({&sequence, std::move(copies)});
}

void Scheduler::transfer_done(const Sequence& sequence, Duration copying) {
  const auto done = std::ranges::find(transfers_, &sequence, &SwapTransfer::sequence);
  expects(done != transfers_.end(), "a transfer is made once");
  if (done->pieces.empty())  // copies to staging do not measure the swap rate
    swap_costs_.note_copy(copying, done->copies.size() * limits_.block_size_bytes);
  const SwapTransfer made = std::move(*done);
  transfers_.erase(done);
  if (!made.pieces.empty()) pieces_copied(made);
}

/// Removes the sequence's pending transfers, whose copies are no longer needed.
void Scheduler::drop_transfers(const Sequence& sequence) {
  for (const SwapTransfer& each : transfers_) {
    if (each.sequence != &sequence) continue;
    for (const SpillPiece& piece : each.pieces) spills_.clear(each.spill, piece);
  }
  std::erase_if(transfers_, [&](const SwapTransfer& each) { return each.sequence == &sequence; });
}

bool Scheduler::has_transfer(const Sequence& sequence) const {
  return std::ranges::find(transfers_, &sequence, &SwapTransfer::sequence) != transfers_.end();
}

bool Scheduler::has_transfers(LeaseId lease) const {
  return std::ranges::any_of(transfers_, [lease](const SwapTransfer& each) {
    return each.sequence->request.lease == lease;
  });
}

void Scheduler::end_swapped(Sequence& sequence, const Completed& how, bool already_delivered) {
  std::deque<PromptRequest>& waiting = tenancy_of(sequence).waiting;
  const auto found = std::ranges::find(waiting, sequence.request.engine_request_id,
                                       &PromptRequest::engine_request_id);
  complete_waiting(*found, how, already_delivered);
  waiting.erase(found);
}

/// Frees the swap blocks and the spill of a waiting request, if it has any. Its text may still be
/// cached.
void Scheduler::free_swapped(const PromptRequest& request, const Completed& how) {
  Tenancy& tenancy = tenancies_.at(request.lease);
  const auto found = tenancy.swapped.find(request.engine_request_id);
  if (found == tenancy.swapped.end()) return;
  Sequence& sequence = *found->second;
  drop_transfers(sequence);
  end_spill(sequence);
  sequence.blocks.free_swapped(tenancy.swap);
  std::vector<PrefixId> cached;
  if (!how.revocation)
    cached = tenancy.prefixes.match({&tenancy.tenant, sequence.tokens}, limits_.tokens_per_block);
  kv_.keep_user(tenancy.prefixes, cached, request.engine_request_id);
  kv_.note_gone(tenancy.prefixes);
  tenancy.swapped.erase(found);
}

}  // namespace leasehold
