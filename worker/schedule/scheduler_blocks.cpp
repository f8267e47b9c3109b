// The part of Scheduler that allocates KV blocks for sequences.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/expects.hpp"
#include "worker/kv/sequence_record.hpp"
#include "worker/schedule/scheduler.hpp"

namespace leasehold {

/// Reserves the blocks of a sequence at its admission. The sequence reuses the blocks of its text
/// that its lease has cached, followed by the last block of an adopted record if there is one, or
/// published blocks if they cover more of the text. The other blocks are newly allocated; the
/// committed blocks of a swapped sequence are copied into them.
Scheduler::Admission Scheduler::reserve_first_blocks(Sequence& sequence, Tenancy& tenancy) {
  const auto positions = static_cast<std::uint32_t>(sequence.tokens.size());
  const OwnedText text{&tenancy.tenant, sequence.tokens};
  tenancy.prefixes.match_again(tenancy.head.match, text, limits_.tokens_per_block);
  std::vector<PrefixId> chain = tenancy.head.match.chain;
  const bool is_swapped = is_moved_out(sequence.blocks.state());
  const bool may_borrow = !is_swapped && !tenancy.is_shared;
  const PublishedMatch published =
      may_borrow ? publications_.match(tenancy, sequence) : PublishedMatch{};
  const bool borrows = published.chain.size() > chain.size();
  if (borrows) chain.clear();
  const std::uint32_t unused = tenancy.prefixes.unused_of(chain);
  const std::size_t known = borrows ? published.chain.size() : chain.size();
  const std::uint32_t needed = limits_.blocks_for(positions) - static_cast<std::uint32_t>(known) +
                               limits_.record_blocks_of(sequence.request);
  const std::uint32_t limit = tenancies_.limit_of(sequence.request);
  if (tenancies_.used_by(tenancy.tenant) + unused + needed > limit) return Admission::LacksQuota;
  const std::uint32_t available = tenancy.available_blocks() - unused;
  if (available < needed) {
    wait_for_blocks(tenancy, {.needed = needed, .available = available});
    return Admission::LacksBlocks;
  }
  const std::size_t looked_up = (positions - 1) / limits_.tokens_per_block;
  tenancy.prefixes.take(chain, tenancy.tenant,
                        is_swapped ? known : looked_up - (known - chain.size()));
  const auto end = may_borrow && !borrows ? take_tail(sequence, tenancy, chain)
                                          : std::optional<PrefixIndex::End>{};
  kv_.make_room(tenancy, needed - (end ? 1 : 0), limit);
  if (is_swapped) {
    swap_.swap_in(sequence, std::move(chain));
  } else if (borrows) {
    publications_.lend(sequence, tenancy, published);
  } else {
    sequence.blocks.start_with(std::move(chain), tenancy.prefixes);
    if (end) sequence.blocks.continue_in(end->block, end->positions);
  }
  if (may_borrow) kv_.note_held(sequence.request.engine_request_id);
  const bool ok =
      sequence.blocks.reserve_record(limits_.record_blocks_of(sequence.request), tenancy.pool) &&
      sequence.blocks.reserve(positions, tenancy.pool);
  ensures(ok, "free blocks can be taken");
  return Admission::Admitted;
}

/// Takes out of the cache the last block of an adopted record that follows the chain. This comes
/// before any eviction, because the block is itself cached and unused.
std::optional<PrefixIndex::End> Scheduler::take_tail(const Sequence& sequence, Tenancy& tenancy,
                                                     std::span<const PrefixId> chain) {
  const std::span<const TokenId> known =
      std::span(sequence.tokens).first(sequence.tokens.size() - 1);
  auto end = tenancy.prefixes.take_tail(
      chain.empty() ? PrefixId{} : chain.back(),
      {&tenancy.tenant, known.subspan(chain.size() * limits_.tokens_per_block)});
  if (!end) return std::nullopt;
  for (const BlockId block : end->free) tenancy.pool.release(block);
  kv_.note_gone(tenancy.prefixes);
  return end;
}

/// Requests growth for the first waiting request. After a refusal that request is rejected if the
/// lease runs no request whose end would free blocks.
void Scheduler::wait_for_blocks(Tenancy& tenancy, FirstBlocks blocks) {
  const std::uint32_t missing = blocks.needed - blocks.available;
  const bool was_refused = tenancy.growth_denied.value_or(missing + 1) <= missing;
  if (!was_refused || tenancy.running > 0) {
    tenancy.blocks_wanted_waiting = std::max(tenancy.blocks_wanted_waiting, missing);
    return;
  }
  const auto detail =
      fmt::format("the prompt needs {} KV blocks, lease {} has {} free and {}", blocks.needed,
                  to_string(tenancy.lease), blocks.available, reason_of_refusal(tenancy));
  const Errc code = tenancy.is_at_quota ? Errc::QuotaBlocks : Errc::PoolExhausted;
  Error why{code, detail, scope_of(tenancy)};
  if (tenancy.is_at_quota && !tenancy.is_shared) why.retry_after_ms = kOtherLeaseEnds_ms;
  reject(tenancy.waiting.front(), std::move(why));
  tenancy.waiting.pop_front();
  tenancy.growth_denied.reset();
}

/// Frees a sequence's blocks. Full blocks stay cached, with three exceptions: under a revoked
/// lease, whose end must not wait for that work; after a non-finite logit, because keys or values
/// may be damaged and a retry must not reuse them; and blocks not yet copied back from swap or the
/// spill file.
void Scheduler::free_blocks(Sequence& sequence, const Completed& how) {
  Tenancy& tenancy = tenancy_of(sequence);
  const bool is_damaged = how.error && how.error->code == Errc::NumericFault;
  const bool is_copied = !transfers_.has(sequence) && sequence.blocks.state() != KvState::Returning;
  spill_.abandon(sequence);
  if (!is_damaged && !how.revocation && is_copied)
    sequence.blocks.cache_all({&tenancy.tenant, sequence.tokens}, tenancy.prefixes);
  const std::span<const PrefixId> cached = sequence.blocks.cached();
  if (tenancy.is_shared) {
    publications_.end_fill(sequence, how);
  } else {
    if (is_damaged && !cached.empty()) tenancy.prefixes.forget(cached.front());
    kv_.keep_user(tenancy.prefixes, cached, sequence.request.engine_request_id);
  }
  sequence.blocks.free(tenancy.pool, tenancy.prefixes);
  publications_.give_back(sequence);
  kv_.note_gone(tenancy.prefixes);
}

}  // namespace leasehold
