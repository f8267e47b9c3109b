#include "worker/schedule/request_moves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace leasehold {

/// The number of the sequence's blocks that no other sequence uses.
std::uint32_t RequestMoves::freed_blocks(const Sequence& sequence) const {
  const PrefixIndex& prefixes = tenancies_.at(sequence.request.lease).prefixes;
  const std::span<const PrefixId> cached = sequence.blocks.cached();
  const auto shared =
      std::ranges::count_if(cached, [&](PrefixId id) { return prefixes.references(id) > 1; });
  return sequence.blocks.own_blocks() - static_cast<std::uint32_t>(shared) -
         sequence.blocks.windows().shared(cached, prefixes.windows());
}

Result<void> RequestMoves::check_room(const Sequence& sequence, Tenancy& to) const {
  const std::uint32_t needed = sequence.blocks.own_blocks();
  const std::uint32_t limit = tenancies_.limit_of(sequence.request);
  const std::uint32_t others = tenancies_.used_by(to.tenant) - freed_blocks(sequence);
  if (others + needed > limit) {
    return fail(Errc::QuotaBlocks,
                fmt::format("the move needs {} KV blocks, and tenant {} holds {} of {}", needed,
                            to.tenant.value, others, limit));
  }
  const std::uint32_t available = to.available_blocks();
  if (needed <= available) return {};
  to.growth.want_for_waiting(needed - available);
  tenancies_.note_busy(to);
  return fail(Errc::PoolExhausted,
              fmt::format("the move needs {} KV blocks, lease {} has {} free and asks for more; "
                          "retry in a moment",
                          needed, to_string(to.lease), available));
}

Result<Move> RequestMoves::begin(Sequence& sequence, LeaseId to) {
  const PromptRequest& request = sequence.request;
  if (request.lease == to) {
    return fail(Errc::BadRequest, fmt::format("request {} runs under lease {} already",
                                              request.engine_request_id.value, to_string(to)));
  }
  const auto found = tenancies_.find(to);
  if (found == tenancies_.end() || found->second.tenant != request.tenant) {
    return fail(
        Errc::LeaseFenced,
        fmt::format("lease {} is not live on this worker; acquire a new lease", to_string(to)));
  }
  Tenancy& tenancy = found->second;
  TRY(check_room(sequence, tenancy));
  const std::uint32_t needed = sequence.blocks.own_blocks();
  kv_.evict(tenancy, needed - std::min(needed, tenancy.pool.free_blocks()));
  auto [blocks, copies] = sequence.blocks.copy_to(tenancy.pool);
  return Move{
      .sequence = &sequence, .to = to, .blocks = std::move(blocks), .copies = std::move(copies)};
}

/// Clears the sequence record, because it contains ids of the old blocks. The next commit writes a
/// complete record in the new lease.
void RequestMoves::finish(Move move, Duration since_call) {
  Sequence& sequence = *move.sequence;
  Tenancy& old = tenancies_.at(sequence.request.lease);
  Tenancy& fresh = tenancies_.at(move.to);
  sequence.blocks.free(old.pool, old.prefixes);
  kv_.note_gone(old.prefixes);
  sequence.blocks = std::move(move.blocks);
  sequence.record = {};
  PromptRequest& request = sequence.request;
  events_.add(Rebound{.engine_request_id = request.engine_request_id,
                      .old_lease = old.lease,
                      .new_lease = fresh.lease,
                      .prompt_tokens = static_cast<std::uint32_t>(request.prompt.size()),
                      .emitted_tokens = sequence.emitted(),
                      .move_duration = since_call});
  request.lease = fresh.lease;
  --old.running;
  ++fresh.running;
  tenancies_.note_busy(fresh);
  tenancies_.note_change(fresh.tenant);
  sequence.is_scavenger = fresh.is_scavenger;
  tenancies_.settle_active();  // the counter that pays for its rows may be another one now
  kv_.evict_above(fresh.tenant, tenancies_.limit_of(request));
}

void RequestMoves::drop(Move move) {
  Tenancy& fresh = tenancies_.at(move.to);
  move.blocks.free(fresh.pool, fresh.prefixes);
  tenancies_.note_busy(fresh);  // a record may have been released
}

}  // namespace leasehold
