#include "worker/schedule/admission.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <utility>

#include "common/expects.hpp"

namespace leasehold {

// ---------------------------------------------------------------------------------------- turns

struct Admission::Turn {
  TokenCounters::Count count = 0;  // includes the work that admitted prompts still need
  TenantAccount* tenant = nullptr;

  /// Adds what the rest of the sequence's known text costs.
  void add_rest(const Sequence& sequence) {
    count += sequence.cost_of(sequence.work_of(sequence.pending()), tenant->quota.weight);
  }
  bool operator<(const Turn& other) const {
    if (count != other.count) return count < other.count;
    return tenant->last_admission < other.tenant->last_admission;
  }
};

std::vector<Admission::Turn> Admission::waiting_tenants(bool scavengers) {
  std::vector<Turn> turns;
  for (TenantAccount* account : deps_.tenancies.waiting_accounts(scavengers))
    turns.push_back({account->counter_of(scavengers), account});
  if (turns.empty()) return turns;
  for (const auto& sequence : deps_.running) {
    if (sequence->is_scavenger != scavengers) continue;
    TenantAccount& account = *deps_.tenancies.at(sequence->request.lease).account;
    account.owed += sequence->cost_of(sequence->work_of(sequence->pending()), account.quota.weight);
  }
  for (Turn& turn : turns) turn.count += turn.tenant->owed;
  return turns;
}

void Admission::admit(TimePoint now) {
  admit_from_all(false, now);
  admit_from_all(true, now);
}

bool Admission::lacks_place() {
  if (deps_.running.size() < deps_.limits.max_batch_size) return false;
  return std::ranges::any_of(
      deps_.tenancies.waiting_accounts(false), [this](const TenantAccount* account) {
        return deps_.tenancies.running_of(*account, false) < account->quota.max_concurrent;
      });
}

void Admission::admit_from_all(bool scavengers, TimePoint now) {
  if (deps_.running.size() >= deps_.limits.max_batch_size) return;
  std::vector<Turn> turns = waiting_tenants(scavengers);
  while (!turns.empty() && deps_.running.size() < deps_.limits.max_batch_size) {
    const auto next = std::ranges::min_element(turns, std::less{});
    if (admit_from(*next->tenant, scavengers, now)) {
      next->add_rest(*deps_.running.all().back());
    } else {
      turns.erase(next);
    }
  }
}

/// Rejects the first waiting request when it no longer fits the quota. While the tenant runs other
/// requests here, the request waits, because this worker's part of the quota may still grow.
bool Admission::reject_too_large(Tenancy& tenancy) {
  if (tenancy.waiting.empty()) return false;
  const auto fits = fit_.check_blocks(tenancy.waiting.front());
  if (fits || deps_.tenancies.running_of(*tenancy.account) > 0) return false;
  deps_.waiting.reject_first(tenancy, fits.error());
  return true;
}

/// Tries the most urgent request of each lease; leases with equally urgent requests take turns,
/// starting after the lease admitted last. A request that lacks quota also holds back the smaller
/// requests of its tenant after it.
bool Admission::admit_from(const TenantAccount& tenant, bool scavengers, TimePoint now) {
  if (deps_.tenancies.running_of(tenant, scavengers) >= tenant.quota.max_concurrent) return false;
  std::vector<LeaseId> turn;
  for (const LeaseId lease : tenant.leases) {
    Tenancy& tenancy = deps_.tenancies.at(lease);
    if (tenancy.is_scavenger != scavengers) continue;
    while (reject_too_large(tenancy)) continue;
    if (!tenancy.waiting.empty()) turn.push_back(lease);
  }
  std::ranges::rotate(turn, std::ranges::upper_bound(turn, tenant.last_admitted));
  std::ranges::stable_sort(turn, {}, [this](LeaseId lease) {
    return urgency(deps_.tenancies.at(lease).waiting.front());
  });
  for (const LeaseId lease : turn) {
    const Attempt attempt = admit_one(deps_.tenancies.at(lease), now);
    if (attempt != Attempt::LacksBlocks) return attempt == Attempt::Admitted;
  }
  return false;
}

// ---------------------------------------------------------------------------------- one request

/// The sequence of the first waiting request. It is either swapped, or kept in `head` while it
/// lacks blocks, so that its text is not copied in each tick.
Sequence& Admission::head_of(Tenancy& tenancy) const {
  const PromptRequest& request = tenancy.waiting.front();
  WaitingHead& head = tenancy.head;
  if (head.arrival != request.arrival) head = {.arrival = request.arrival};
  const auto swapped = tenancy.swapped.find(request.engine_request_id);
  if (swapped != tenancy.swapped.end()) return *swapped->second;
  if (!head.sequence)
    head.sequence =
        std::make_unique<Sequence>(request, deps_.limits.tokens_per_block,
                                   deps_.limits.state_blocks, deps_.limits.window_shape());
  return *head.sequence;
}

std::unique_ptr<Sequence> Admission::take_head(Tenancy& tenancy) {
  auto swapped = tenancy.swapped.extract(tenancy.waiting.front().engine_request_id);
  WaitingHead head = std::exchange(tenancy.head, {});
  return swapped ? std::move(swapped.mapped()) : std::move(head.sequence);
}

/// Cached tokens are not charged, so they are returned to the tenant's allowance at once.
void Admission::note_cached(Sequence& sequence) {
  PromptRequest& request = sequence.request;
  request.cached = request.charged = sequence.blocks.committed();
  deps_.tenancies.give_back_cached(request, request.cached);
}

/// Precondition: a request of the lease waits.
Admission::Attempt Admission::admit_one(Tenancy& tenancy, TimePoint now) {
  const Attempt attempt = reserve_first_blocks(head_of(tenancy), tenancy);
  if (attempt != Attempt::Admitted) return attempt;
  std::unique_ptr<Sequence> sequence = take_head(tenancy);
  sequence->stop_slot = deps_.transfers.free_stop_slot();
  sequence->admission = ++admissions_;
  sequence->is_scavenger = tenancy.is_scavenger;
  if (!sequence->request.was_admitted()) {
    note_cached(*sequence);
    if (sequence->request.is_traced)
      deps_.events.add(Admitted{sequence->request.engine_request_id, now});
  }
  sequence->request.block_limit = deps_.tenancies.limit_of(sequence->request);
  TenantAccount& tenant = *tenancy.account;
  ++tenant.admitted;
  tenant.last_admission = admissions_;
  tenant.last_admitted = tenancy.lease;
  deps_.tenancies.note_change(tenancy.tenant);
  tenancy.waiting.pop_front();
  ++tenancy.running;
  const PromptRequest& request = sequence->request;
  if (request.rebound_from) {
    deps_.events.add(Rebound{request.engine_request_id, *request.rebound_from, request.lease,
                             static_cast<std::uint32_t>(request.prompt.size()),
                             static_cast<std::uint32_t>(request.emitted.size())});
  }
  deps_.running.add(std::move(sequence));
  return Attempt::Admitted;
}

// --------------------------------------------------------------------------------------- blocks

/// The blocks of the sequence's text that its lease has cached, or published blocks if they cover
/// more of the text.
Admission::KnownPrefix Admission::known_prefix(const Sequence& sequence, Tenancy& tenancy) {
  tenancy.prefixes.match_again(tenancy.head.match, sequence.owned_text(tenancy.tenant),
                               deps_.limits.tokens_per_block);
  KnownPrefix known{.chain = tenancy.head.match.chain};
  const std::optional<std::uint32_t> first_row = sequence.request.first_row_needed();
  if (first_row) leave_rows_from(*first_row, known.chain);
  const bool is_moved_out = leasehold::is_moved_out(sequence.blocks.state());
  known.may_take_tail = !is_moved_out && !tenancy.is_shared && !first_row;
  if (deps_.limits.state_blocks > 0) {
    leave_rows_without_state(sequence, tenancy, known);
    if (is_moved_out) known.chain.clear();  // its state returns with all its blocks
    known.first_window = static_cast<std::uint32_t>(known.chain.size());
    return known;
  }
  const bool may_borrow = known.may_take_tail;
  leave_rows_without_windows(sequence, tenancy, known);
  if (!may_borrow) return known;
  const PublishedMatch& published = deps_.publications.match(tenancy, sequence);
  if (published.chain.size() <= known.chain.size()) return known;
  return {.chain = {}, .published = published, .may_take_tail = false};
}

/// Reserves the blocks of a sequence at its admission. Blocks that are not known are newly
/// allocated; the blocks of a swapped sequence are copied into them.
Admission::Attempt Admission::reserve_first_blocks(Sequence& sequence, Tenancy& tenancy) {
  const auto positions = static_cast<std::uint32_t>(sequence.tokens.size());
  KnownPrefix known = known_prefix(sequence, tenancy);
  const bool is_swapped = is_moved_out(sequence.blocks.state());
  const std::uint32_t unused = tenancy.prefixes.unused_of(known.chain) +
                               tenancy.prefixes.windows().unused_of(known.windows());
  const std::uint32_t needed = first_blocks_of(sequence, known);
  const std::uint32_t limit = deps_.tenancies.limit_of(sequence.request);
  const std::uint32_t used = deps_.tenancies.used_by(tenancy.tenant) + unused;
  if (used + needed > limit) return Attempt::LacksQuota;
  const std::uint32_t available = tenancy.available_blocks() - unused;
  if (available < needed) {
    wait_for_blocks(tenancy, {.needed = needed, .available = available});
    return Attempt::LacksBlocks;
  }
  const std::size_t looked_up = (positions - 1) / deps_.limits.tokens_per_block;
  tenancy.prefixes.take(known.chain, tenancy.tenant,
                        is_swapped ? known.chain.size() : looked_up - known.published.chain.size());
  tenancy.prefixes.windows().reference(known.windows());
  if (is_swapped) {
    deps_.kv.make_room(tenancy, needed, limit);
    deps_.swap.swap_in(sequence, std::move(known.chain));
  } else if (!known.published.chain.empty()) {
    deps_.kv.make_room(tenancy, needed, limit);
    deps_.publications.lend(sequence, tenancy, known.published);
  } else {
    start(sequence, tenancy, std::move(known),
          {.needed = needed,
           .limit = limit,
           .spare = std::min(available - needed, limit - used - needed)});
  }
  if (!is_swapped && !tenancy.is_shared) deps_.kv.note_held(sequence.request.engine_request_id);
  const bool ok = sequence.blocks.reserve_record(deps_.limits.record_blocks_of(sequence.request),
                                                 tenancy.pool) &&
                  sequence.blocks.reserve(positions, tenancy.pool);
  ensures(ok, "free blocks can be taken");
  return Attempt::Admitted;
}

/// Starts a sequence with its cached blocks, followed by the last block of an ended text if there
/// is one. The cache keeps its copy of the state if the lease has room for both; otherwise the
/// sequence takes it, so that a cached state never makes a request need more blocks.
void Admission::start(Sequence& sequence, Tenancy& tenancy, KnownPrefix known,
                      const StartRoom& room) {
  const PrefixId last = known.chain.empty() ? PrefixId{} : known.chain.back();
  const auto end = known.may_take_tail ? take_tail(sequence, tenancy, known.chain)
                                       : std::optional<PrefixIndex::End>{};
  std::vector<BlockId> state;
  if (end) {
    state = end->state;
  } else if (last.value != 0) {
    state = tenancy.prefixes.states().take(last);  // not evicted meanwhile
  }
  const bool is_known = end || last.value != 0;
  ensures(deps_.limits.state_blocks == 0 || state.empty() != is_known,
          "a text continues only where its state is known");
  const auto state_blocks = static_cast<std::uint32_t>(state.size());
  const bool is_copied = !end && state_blocks > 0 && room.spare >= state_blocks;
  const std::uint32_t of_end =
      end ? 1 + static_cast<std::uint32_t>(end->window.size()) : std::uint32_t{0};
  const std::uint32_t held = of_end + (is_copied ? 0 : state_blocks);
  deps_.kv.make_room(tenancy, room.needed - held, room.limit);
  sequence.blocks.start_with(std::move(known.chain), tenancy.prefixes, known.first_window);
  if (end) sequence.blocks.continue_in(end->block, end->positions, end->window);
  if (is_copied) {
    std::vector<BlockId> own;
    std::vector<BlockCopy> copies;
    const bool ok = tenancy.pool.take(state_blocks, own).has_value();
    ensures(ok, "free blocks can be taken");
    for (std::size_t i = 0; i < own.size(); ++i) copies.push_back({.from = state[i], .to = own[i]});
    deps_.transfers.add({&sequence, std::move(copies)});
    tenancy.prefixes.states().set(last, std::exchange(state, std::move(own)));
  }
  if (deps_.limits.state_blocks == 0) return;
  const bool ok = sequence.blocks.reserve_state(state, tenancy.pool).has_value();
  ensures(ok, "free blocks can be taken");
}

/// Shortens the chain to its last entry with a state, unless an ended text with a state follows
/// the whole chain: a sequence can only start where a state is.
void Admission::leave_rows_without_state(const Sequence& sequence, const Tenancy& tenancy,
                                         KnownPrefix& known) const {
  std::vector<PrefixId>& chain = known.chain;
  known.may_take_tail =
      known.may_take_tail &&
      tenancy.prefixes
          .find_tail(chain.empty() ? PrefixId{} : chain.back(), rest_of(sequence, tenancy, chain),
                     /*needs_state=*/true)
          .has_value();
  if (known.may_take_tail) return;
  while (!chain.empty() && !tenancy.prefixes.states().has(chain.back())) chain.pop_back();
}

/// Shortens the chain until the blocks of layers with a window that the next row reads are cached
/// too, unless they are with an ended text that follows the whole chain. A swapped sequence returns
/// with all its blocks, because its window may not be cached any more.
void Admission::leave_rows_without_windows(const Sequence& sequence, const Tenancy& tenancy,
                                           KnownPrefix& known) const {
  std::vector<PrefixId>& chain = known.chain;
  known.first_window = static_cast<std::uint32_t>(chain.size());
  if (deps_.limits.window.n_groups == 0) return;
  if (is_moved_out(sequence.blocks.state())) {
    chain.clear();
    known.first_window = 0;
    return;
  }
  const EntryBlocks& windows = tenancy.prefixes.windows();
  const auto has_window = [&windows](PrefixId id) { return windows.has(id); };
  if (known.may_take_tail) {
    const auto tail = tenancy.prefixes.find_tail(chain.empty() ? PrefixId{} : chain.back(),
                                                 rest_of(sequence, tenancy, chain), false);
    if (tail) known.first_window = deps_.limits.first_window(known.first_window, tail->positions);
    if (tail && has_window(tail->id) && std::ranges::all_of(known.windows(), has_window)) return;
  }
  known.may_take_tail = false;
  chain.resize(length_with_windows(chain, windows, deps_.limits.window));
  known.first_window = deps_.limits.first_window(static_cast<std::uint32_t>(chain.size()));
}

/// The blocks that a sequence needs for its admission besides those that are known.
std::uint32_t Admission::first_blocks_of(const Sequence& sequence, const KnownPrefix& known) const {
  const SchedulerLimits& limits = deps_.limits;
  const std::uint32_t blocks =
      limits.blocks_per_group(static_cast<std::uint32_t>(sequence.tokens.size()));
  const auto n_known = static_cast<std::uint32_t>(known.blocks());
  const bool is_swapped = is_moved_out(sequence.blocks.state());
  const std::uint32_t committed =
      is_swapped ? sequence.blocks.committed() : n_known * limits.tokens_per_block;
  const std::uint32_t first = is_swapped ? limits.window_shape().first(committed) : n_known;
  return blocks - n_known +
         limits.window.n_groups * (limits.window_shape().end(committed, blocks) - first) +
         limits.fixed_blocks_of(sequence.request);
}

/// Shortens the chain, so that this row and the later ones are computed.
void Admission::leave_rows_from(std::uint32_t first_row, std::vector<PrefixId>& chain) const {
  const std::size_t blocks =
      std::min<std::size_t>(chain.size(), first_row / deps_.limits.tokens_per_block);
  chain.erase(chain.begin() + static_cast<std::ptrdiff_t>(blocks), chain.end());
}

/// The text after the chain, without its last token.
OwnedText Admission::rest_of(const Sequence& sequence, const Tenancy& tenancy,
                             std::span<const PrefixId> chain) const {
  const std::size_t from = chain.size() * deps_.limits.tokens_per_block;
  return sequence.owned_text(tenancy.tenant).part(from, sequence.tokens.size() - 1 - from);
}

/// Takes out of the cache the last block of an ended text that follows the chain. This comes before
/// any eviction, because the block is itself cached and unused.
std::optional<PrefixIndex::End> Admission::take_tail(const Sequence& sequence, Tenancy& tenancy,
                                                     std::span<const PrefixId> chain) {
  auto end =
      tenancy.prefixes.take_tail(chain.empty() ? PrefixId{} : chain.back(),
                                 rest_of(sequence, tenancy, chain), deps_.limits.state_blocks > 0);
  if (!end) return std::nullopt;
  for (const BlockId block : end->free) tenancy.pool.release(block);
  deps_.kv.note_gone(tenancy.prefixes);
  return end;
}

/// Requests growth for the first waiting request. After a refusal that request is rejected if the
/// lease runs no request whose end would free blocks.
void Admission::wait_for_blocks(Tenancy& tenancy, FirstBlocks blocks) {
  const std::uint32_t missing = blocks.needed - blocks.available;
  if (!tenancy.growth.is_denied(missing) || tenancy.running > 0)
    return tenancy.growth.want_for_waiting(missing);
  const bool is_at_quota = tenancy.growth.is_at_quota();
  const auto detail =
      fmt::format("the prompt needs {} KV blocks, lease {} has {} free and {}", blocks.needed,
                  to_string(tenancy.lease), blocks.available, reason_of_refusal(tenancy));
  const Errc code = is_at_quota ? Errc::QuotaBlocks : Errc::PoolExhausted;
  Error why{code, detail, scope_of(tenancy)};
  if (is_at_quota && !tenancy.is_shared) why.retry_after_ms = kOtherLeaseEnds_ms;
  deps_.waiting.reject_first(tenancy, std::move(why));
  tenancy.growth.forget_denial();
}

}  // namespace leasehold
