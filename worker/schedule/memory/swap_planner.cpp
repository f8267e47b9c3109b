#include "worker/schedule/memory/swap_planner.hpp"

#include <algorithm>
#include <utility>

namespace leasehold {

SwapPlanner::Choice SwapPlanner::choose(const Sequence& victim, std::optional<double> row_ns) {
  if (victim.blocks.state() != KvState::Active) return Choice::Drop;
  if (victim.shared_lease) return Choice::Drop;  // its first blocks belong to the shared lease
  if (!costs_.is_swap_cheaper(work_of(victim), row_ns)) {
    costs_.note_dropped();
    return Choice::Drop;
  }
  Tenancy& tenancy = tenancies_.at(victim.request.lease);
  const std::uint32_t needed = moved_blocks(victim.blocks);
  const std::uint32_t free = tenancy.swap.free_blocks();
  if (needed <= free) return Choice::SwapOut;
  tenancy.growth.want_swap(needed - free);
  return !tenancy.growth.is_swap_denied() || spill_.make_room(tenancy, row_ns) ? Choice::Await
                                                                               : Choice::Drop;
}

/// Leaves out blocks that other sequences use: they stay cached, so they are neither computed again
/// nor copied back.
SwapWork SwapPlanner::work_of(const Sequence& victim) const {
  const PrefixIndex& prefixes = tenancies_.at(victim.request.lease).prefixes;
  const auto has_other_users = [&](PrefixId id) { return prefixes.references(id) > 1; };
  const auto shared =
      static_cast<std::uint32_t>(std::ranges::count_if(victim.blocks.cached(), has_other_users));
  const std::uint32_t blocks = moved_blocks(victim.blocks);
  const std::uint32_t copies = blocks + (blocks - shared);
  const std::uint32_t from = shared * limits_.tokens_per_block;
  return {.copied_bytes = copies * limits_.block_size_bytes,
          .rows_to_repeat = work_of_rows(from, victim.blocks.committed() - from)};
}

/// The record contains block ids, so it is written anew after the swap-in.
std::uint32_t SwapPlanner::swap_out(Sequence& victim) {
  Tenancy& tenancy = tenancies_.at(victim.request.lease);
  std::vector<BlockCopy> copies =
      victim.blocks.swap_out(tenancy.pool, tenancy.swap, tenancy.prefixes);
  victim.record = {};
  victim.request.rebound_from.reset();  // the rebind is already reported
  const auto count = static_cast<std::uint32_t>(copies.size());
  transfers_.add({&victim, std::move(copies)});
  return count;
}

void SwapPlanner::swap_in(Sequence& sequence, std::vector<PrefixId> chain) {
  if (sequence.blocks.state() == KvState::Spilled)
    return spill_.begin_return(sequence, std::move(chain));
  spill_.end(sequence);
  Tenancy& tenancy = tenancies_.at(sequence.request.lease);
  std::vector<BlockCopy> copies =
      sequence.blocks.swap_in(std::move(chain), tenancy.pool, tenancy.swap, tenancy.prefixes);
  if (!copies.empty()) transfers_.add({&sequence, std::move(copies)});
}

void SwapPlanner::copied(const SwapTransfer& made, Duration copying) {
  costs_.note_copy(copying, made.copies.size() * limits_.block_size_bytes);
}

void SwapPlanner::free(const PromptRequest& request, const Completed& how) {
  Tenancy& tenancy = tenancies_.at(request.lease);
  const auto found = tenancy.swapped.find(request.engine_request_id);
  if (found == tenancy.swapped.end()) return;
  Sequence& sequence = *found->second;
  spill_.abandon(sequence);
  sequence.blocks.free_swapped(tenancy.swap);
  std::vector<PrefixId> cached;
  if (!how.revocation)
    cached = tenancy.prefixes.match(sequence.owned_text(tenancy.tenant), limits_.tokens_per_block);
  kv_.keep_user(tenancy.prefixes, cached, request.engine_request_id);
  kv_.note_gone(tenancy.prefixes);
  tenancy.swapped.erase(found);
}

}  // namespace leasehold
