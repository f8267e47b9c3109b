// The part of Scheduler that moves a running sequence to another lease of its tenant.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "worker/schedule/scheduler.hpp"

namespace leasehold {

/// Finds a running request that can be moved. Fails while a transfer is pending: the transfer's
/// source blocks are free already but not copied yet, so a move could overwrite them.
Result<Sequence*> Scheduler::find_movable(const RequestId& engine_request_id) const {
  Sequence* const sequence = running_.find(engine_request_id);
  const std::string id = engine_request_id.value;
  if (sequence == nullptr && !id_in_use(engine_request_id))
    return fail(Errc::UnknownRequest, fmt::format("request {} is neither waiting nor running", id));
  if (sequence == nullptr)
    return fail(Errc::QueueFull, fmt::format("request {} waits; move it when it runs again", id));
  const bool is_in_place = sequence->blocks.state() != KvState::Returning && transfers_.empty();
  if (is_in_place) return sequence;
  return fail(Errc::QueueFull, "blocks of the worker are being copied; retry in a moment");
}

/// The number of the sequence's blocks that no other sequence uses.
std::uint32_t Scheduler::freed_by_move(const Sequence& sequence) const {
  const PrefixIndex& prefixes = tenancies_.at(sequence.request.lease).prefixes;
  const auto shared = std::ranges::count_if(
      sequence.blocks.cached(), [&](PrefixId id) { return prefixes.references(id) > 1; });
  return sequence.blocks.own_blocks() - static_cast<std::uint32_t>(shared);
}

Result<void> Scheduler::check_room(const Sequence& sequence, Tenancy& to) const {
  const std::uint32_t needed = sequence.blocks.own_blocks();
  const std::uint32_t limit = tenancies_.limit_of(sequence.request);
  const std::uint32_t others = tenancies_.used_by(to.tenant) - freed_by_move(sequence);
  if (others + needed > limit) {
    return fail(Errc::QuotaBlocks,
                fmt::format("the move needs {} KV blocks, and tenant {} holds {} of {}", needed,
                            to.tenant.value, others, limit));
  }
  const std::uint32_t available = to.available_blocks();
  if (needed <= available) return {};
  to.blocks_wanted_waiting = std::max(to.blocks_wanted_waiting, needed - available);
  return fail(Errc::PoolExhausted,
              fmt::format("the move needs {} KV blocks, lease {} has {} free and asks for more; "
                          "retry in a moment",
                          needed, to_string(to.lease), available));
}

Result<Move> Scheduler::begin_move(const RequestId& engine_request_id, LeaseId to) {
  Sequence* const sequence = TRY(find_movable(engine_request_id));
  const PromptRequest& request = sequence->request;
  if (request.lease == to) {
    return fail(Errc::BadRequest, fmt::format("request {} runs under lease {} already",
                                              engine_request_id.value, to_string(to)));
  }
  const auto found = tenancies_.find(to);
  if (found == tenancies_.end() || found->second.tenant != request.tenant) {
    return fail(
        Errc::LeaseFenced,
        fmt::format("lease {} is not live on this worker; acquire a new lease", to_string(to)));
  }
  Tenancy& tenancy = found->second;
  TRY(check_room(*sequence, tenancy));
  const std::uint32_t needed = sequence->blocks.own_blocks();
  kv_.evict(tenancy, needed - std::min(needed, tenancy.pool.free_blocks()));
  auto [blocks, copies] = sequence->blocks.copy_to(tenancy.pool);
  return Move{
      .sequence = sequence, .to = to, .blocks = std::move(blocks), .copies = std::move(copies)};
}

/// Clears the sequence record, because it contains ids of the old blocks. The next commit writes a
/// complete record in the new lease.
void Scheduler::finish_move(Move move, Duration since_call) {
  Sequence& sequence = *move.sequence;
  Tenancy& old = tenancy_of(sequence);
  Tenancy& fresh = tenancies_.at(move.to);
  spill_.end(sequence);
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
                      .moved_in = since_call});
  request.lease = fresh.lease;
  --old.running;
  ++fresh.running;
  tenancies_.note_change(fresh.tenant);
  kv_.evict_above(fresh.tenant, tenancies_.limit_of(request));
}

void Scheduler::drop_move(Move move) {
  Tenancy& fresh = tenancies_.at(move.to);
  move.blocks.free(fresh.pool, fresh.prefixes);
}

}  // namespace leasehold
