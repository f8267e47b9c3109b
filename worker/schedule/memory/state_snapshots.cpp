#include "worker/schedule/memory/state_snapshots.hpp"

#include "common/expects.hpp"

namespace leasehold {

void StateSnapshots::plan() {
  if (limits_.state_blocks == 0) return;
  for (const auto& sequence : running_) {
    if (!is_due(*sequence)) continue;
    Tenancy& tenancy = tenancies_.at(sequence->request.lease);
    if (!make_room(*sequence, tenancy)) continue;
    std::vector<BlockCopy> copies;
    for (const BlockId from : sequence->blocks.recurrent().from()) {
      const std::optional<BlockId> to = tenancy.pool.take();
      expects(to.has_value(), "a snapshot has the room that was made");
      copies.push_back({.from = from, .to = *to});
    }
    transfers_.add({.sequence = sequence.get(),
                    .copies = std::move(copies),
                    .state_of = sequence->blocks.cached().back()});
  }
}

/// True if the committed positions end at a boundary, and all their blocks are cached.
bool StateSnapshots::is_due(const Sequence& sequence) const {
  const BlockTable& table = sequence.blocks;
  const bool is_at_boundary = table.state() == KvState::Active && table.committed() > 0 &&
                              table.committed() % kSnapshotPositions == 0 &&
                              table.cached().size() * limits_.tokens_per_block == table.committed();
  return is_at_boundary && !transfers_.has(sequence) &&
         !tenancies_.at(sequence.request.lease).prefixes.states().has(table.cached().back());
}

bool StateSnapshots::make_room(const Sequence& sequence, Tenancy& tenancy) {
  const std::uint32_t limit = tenancies_.limit_of(sequence.request);
  const std::uint32_t used = tenancies_.used_by(tenancy.tenant);
  const bool fits = tenancy.available_blocks() >= limits_.state_blocks + tenancy.running &&
                    used + limits_.state_blocks + tenancies_.running_of(*tenancy.account) <= limit;
  if (fits) kv_.make_room(tenancy, limits_.state_blocks, limit);
  return fits;
}

/// The sequence may have stopped after the copy was listed, and its entry may be gone.
void StateSnapshots::copied(const SwapTransfer& made) {
  Tenancy& tenancy = tenancies_.at(made.sequence->request.lease);
  PrefixIndex& prefixes = tenancy.prefixes;
  if (!prefixes.contains(made.state_of) || prefixes.states().has(made.state_of))
    return release_snapshot(made, tenancy.pool);
  std::vector<BlockId> blocks;
  for (const BlockCopy& copy : made.copies) blocks.push_back(copy.to);
  prefixes.states().set(made.state_of, std::move(blocks));
  KvAllocator::limit_states(tenancy);
}

void release_snapshot(const SwapTransfer& transfer, BlockPool& pool) {
  for (const BlockCopy& copy : transfer.copies) pool.release(copy.to);
}

}  // namespace leasehold
