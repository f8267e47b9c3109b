#include "worker/schedule/scheduler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "common/expects.hpp"
#include "worker/schedule/rows/prompt_rows.hpp"

namespace leasehold {
namespace {

/// Notes that these prompt tokens are reported, and returns their event.
PromptLogprobs report(Sequence& sequence, std::vector<PromptToken> prompt) {
  PromptRequest& request = sequence.request;
  const std::uint32_t from = request.reported_positions;
  request.reported_positions += static_cast<std::uint32_t>(prompt.size());
  sequence.untaken_positions += static_cast<std::uint32_t>(prompt.size());
  return {request.engine_request_id, from, std::move(prompt)};
}

Completed end_of(const Sequence& sequence, CompletionReason reason) {
  Completed how{.reason = reason};
  if (const auto& asked = sequence.request.embedding)
    how.embedding = asked->pooled.embedding(asked->dimensions);
  return how;
}

/// The prompts that can be computed in one step.
ShortPrompts short_prompts_of(const RunningSequences& running, const Tenancies& tenancies,
                              std::uint32_t token_budget) {
  ShortPromptCount count;
  if (!running.has_prompts()) return count.result();
  for (const auto& sequence : running) {
    if (sequence->is_scavenger) continue;
    const TenantAccount& tenant = *tenancies.at(sequence->request.lease).account;
    const std::uint64_t work = sequence->work_of(sequence->pending());
    if (sequence->is_decoding()) {
      count.add_stream(tenant);
    } else if (work <= token_budget) {
      count.add_prompt(tenant, work);
    }
  }
  return count.result();
}

}  // namespace

// ------------------------------------------------------------------------------------- the tick

void Scheduler::admit(TimePoint now) {
  swap_.spill().check_timeouts(now);
  waiting_.drop_expired(now);
  tenancies_.settle_active();
  if (!transfers_.empty()) return;
  // The scavenger that was admitted last stops while another request lacks a place. One in each
  // tick is enough: the next tick follows after one step.
  const auto last = std::ranges::find_if(
      running_.all().rbegin(), running_.all().rend(),
      [](const std::unique_ptr<Sequence>& sequence) { return sequence->is_scavenger; });
  if (last != running_.all().rend() && admission_.lacks_place()) preempt({.sequence = last->get()});
  admission_.admit(now);
}

StepPlan Scheduler::plan() {
  StepPlan plan = plan_rows();
  // Planning again gives a victim's blocks to the sequence that lacked them before any other use.
  if (relieve_starved()) plan = plan_rows();
  for (const auto& [lease, tenancy] : tenancies_.busy()) tenancy->growth.forget_denial();
  const StepRows& planned = rows_.planned();
  if (planned.prefill == 0) rows_.add_proposed(proposals_.add_rows(plan, planned.decode));
  snapshots_.plan();
  swap_.spill().plan_pieces();
  return plan;
}

/// Scavengers get rows after all other sequences (ScavengerShare). Rows that are computed again
/// leave the later sequences one row each.
StepPlan Scheduler::plan_rows() {
  StepPlan plan;
  preemption_.begin_plan();
  rows_.begin_plan();
  for (const bool scavengers : {false, true}) {
    if (scavengers) rows_.begin_scavengers();
    const auto decodes = [scavengers](const std::unique_ptr<Sequence>& sequence) {
      return sequence->is_scavenger == scavengers && sequence->is_decoding();
    };
    auto later = static_cast<std::uint32_t>(std::ranges::count_if(running_.all(), decodes));
    for (const auto& sequence : running_) {
      if (!decodes(sequence)) continue;
      --later;
      if (rows_.left() == 0) continue;
      const std::uint32_t most = rows_.left() - std::min(rows_.left() - 1, later);
      rows_.add_decode(add_part(*sequence, std::min(sequence->rows_ready(), most), plan));
    }
    for (const PlannedRows& part : prefill_least_served(scavengers)) {
      const std::uint32_t n_rows = add_part(*part.sequence, part.n_rows, plan);
      rows_.add_prompt(n_rows, part.sequence->work_of(n_rows));
    }
  }
  return plan;
}

/// Returns the rows that were planned.
std::uint32_t Scheduler::add_part(Sequence& sequence, std::uint32_t n_rows, StepPlan& plan) {
  if (n_rows == 0) return 0;
  if (const auto starved = kv_.reserve_rows(sequence, n_rows)) {
    preemption_.note_starved(*starved);
    return 0;
  }
  plan.parts.push_back({&sequence, n_rows, n_rows == sequence.pending()});
  return n_rows;
}

/// Assigns rows to the running prompts: each block of rows goes to the tenant with the least
/// counter, and within the tenant to the prompt admitted first. A prompt that fits in one step goes
/// before long ones.
std::vector<PlannedRows> Scheduler::prefill_least_served(bool scavengers) const {
  if (scavengers && rows_.left() == 0) return {};
  const std::uint32_t work = rows_.prompt_work(
      scavengers ? ShortPrompts{} : short_prompts_of(running_, tenancies_, limits_.token_budget));
  if (work == 0) return {};
  const auto is_prompt = [scavengers](const auto& sequence) {
    return !sequence->is_decoding() && sequence->is_scavenger == scavengers;
  };
  const auto drawing = rows_.planned().decode +
                       static_cast<std::uint32_t>(std::ranges::count_if(running_.all(), is_prompt));
  const std::uint32_t logit_rows = limits_.max_logit_rows();
  PromptRows prompts({.rows = rows_.left(),
                      .work = work,
                      .short_work = limits_.token_budget,
                      .logit_rows = logit_rows - std::min(logit_rows, drawing)});
  for (const auto& sequence : running_) {
    if (!is_prompt(sequence)) continue;
    prompts.add(*sequence, *tenancies_.at(sequence->request.lease).account);
  }
  return prompts.give(limits_.tokens_per_block);
}

void Scheduler::commit(const PlannedRows& part, std::vector<DrawnToken> drawn,
                       std::vector<PromptToken> prompt) {
  expects(transfers_.empty(), "blocks are copied before rows are computed");
  Sequence& sequence = *part.sequence;
  Tenancy& tenancy = tenancies_.at(sequence.request.lease);
  const std::uint32_t rows_kept = part.rows_kept(drawn.size());
  proposals_.note_drawn(part, drawn);
  if (!prompt.empty()) events_.add(report(sequence, std::move(prompt)));
  std::uint64_t used = sequence.prompt_rows(rows_kept);
  for (DrawnToken& each : drawn) {
    if (!each.is_text) continue;
    const TokenId token = each.sampled.token;
    events_.add(Token{sequence.request.engine_request_id, token, sequence.emitted(),
                      std::move(each.sampled.logprobs)});
    sequence.tokens.push_back(token);
    ++used;
  }
  std::uint64_t& unused = sequence.request.rate_charge.unused_tokens;
  unused -= std::min(used, unused);
  const TenantAccount& account = *tenancy.account;
  account.counter_of(sequence.is_scavenger) +=
      sequence.cost_of(sequence.work_of(part.n_rows), account.quota.weight);
  rows_.note_committed(part.n_rows, sequence.is_scavenger);
  sequence.commit(rows_kept);
  sequence.blocks.cache_full(sequence.owned_text(tenancy.tenant), tenancy.prefixes);
  tenancy.served_tokens += rows_kept;
  sequence.blocks.trim(static_cast<std::uint32_t>(sequence.tokens.size()), tenancy.pool,
                       tenancy.prefixes);
  if (drawn.empty()) return;
  const auto ends = drawn.back().ends ? drawn.back().ends : fit().capacity_end(sequence);
  if (ends) end_sequence(sequence, end_of(sequence, *ends));
}

void Scheduler::note_duration(Duration step) {
  rows_.note_duration(step);
  proposals_.note_duration(step, rows_.planned());
}

void Scheduler::transfer_done(const Sequence& sequence, Duration copying) {
  const SwapTransfer made = transfers_.take(sequence);
  if (made.state_of.value != 0) return snapshots_.copied(made);
  if (made.pieces.empty()) return swap_.copied(made, copying);
  swap_.spill().copied(made);
}

// -------------------------------------------------------------------------- preemption and ends

bool Scheduler::relieve_starved() {
  return preemption_.relieve(rows_.row_ns(), [this](const Relief& relief) {
    if (!relief.end) return preempt(relief);
    end_sequence(*relief.sequence, {.reason = CompletionReason::EngineError, .error = relief.end});
  });
}

/// Swaps out the blocks of the sequence or drops them, and queues its request with its emitted
/// tokens. Full blocks stay cached until their room is needed, so that fewer rows are computed
/// again or fewer blocks copied back.
void Scheduler::preempt(const Relief& relief) {
  Sequence& victim = *relief.sequence;
  Tenancy& tenancy = tenancies_.at(victim.request.lease);
  const std::uint32_t available = tenancy.available_blocks();
  PromptRequest request = request_to_wait(victim);
  victim.untaken_positions = 0;  // `logprobs_taken` does not find it while it waits
  const std::uint32_t swapped_blocks = relief.to_swap ? swap_.swap_out(victim) : 0;
  if (!relief.to_swap) free_blocks(victim, {});
  events_.add(Preempted{.engine_request_id = request.engine_request_id,
                        .cause = relief.cause,
                        .freed_blocks = tenancy.available_blocks() - available,
                        .swapped_blocks = swapped_blocks,
                        .emitted_tokens = victim.emitted()});
  tenancies_.note_preemption(tenancy);
  std::unique_ptr<Sequence> stopped = stop_running(victim);
  if (relief.to_swap) tenancy.swapped.emplace(request.engine_request_id, std::move(stopped));
  waiting_.insert(std::move(request));
}

void Scheduler::end_sequence(Sequence& sequence, Completed how, bool already_delivered) {
  const RequestId& id = sequence.request.engine_request_id;
  if (is_moved_out(sequence.blocks.state())) {
    const bool ended = waiting_.end(id, how, already_delivered);
    ensures(ended, "the request of a swapped sequence waits");
    return;
  }
  how.engine_request_id = id;
  how.emitted_tokens = sequence.emitted();
  how.cached_tokens = sequence.request.cached;
  const bool is_fill = tenancies_.at(sequence.request.lease).is_shared;
  tenancies_.give_back_rest(sequence.request);
  free_blocks(sequence, how);
  if (!already_delivered && !is_fill) events_.add(std::move(how));
  stop_running(sequence);
}

/// Frees a sequence's blocks. Full blocks stay cached, with three exceptions: under a revoked
/// lease, whose end must not wait for that work; after a non-finite logit, because keys or values
/// may be damaged and a retry must not reuse them; and blocks not yet copied back from swap or the
/// spill file.
void Scheduler::free_blocks(Sequence& sequence, const Completed& how) {
  Tenancy& tenancy = tenancies_.at(sequence.request.lease);
  const bool is_damaged = how.error && how.error->code == Errc::NumericFault;
  const bool is_copied = !transfers_.has(sequence) && sequence.blocks.state() != KvState::Returning;
  swap_.spill().abandon(sequence);
  if (!is_damaged && !how.revocation && is_copied)
    sequence.blocks.cache_all(sequence.owned_text(tenancy.tenant), tenancy.prefixes);
  const std::span<const PrefixId> cached = sequence.blocks.cached();
  if (tenancy.is_shared) {
    publications_.end_fill(sequence, how);
  } else {
    if (is_damaged && !cached.empty()) tenancy.prefixes.forget(cached.front());
    kv_.keep_user(tenancy.prefixes, cached, sequence.request.engine_request_id);
  }
  sequence.blocks.free(tenancy.pool, tenancy.prefixes);
  kv_.limit_states(tenancy);
  publications_.give_back(sequence);
  kv_.note_gone(tenancy.prefixes);
}

std::unique_ptr<Sequence> Scheduler::stop_running(Sequence& sequence) {
  Tenancy& tenancy = tenancies_.at(sequence.request.lease);
  --tenancy.running;
  tenancies_.note_change(tenancy.tenant);
  return running_.remove(sequence);
}

void Scheduler::end_all(const Error& error) {
  Completed how{.reason = CompletionReason::EngineError, .error = error};
  how.error->scope = FailureScope::Engine;
  while (!running_.empty()) end_sequence(*running_.all().back(), how);
  for (const auto& [lease, tenancy] : tenancies_.busy()) waiting_.end_all(*tenancy, how);
}

// ------------------------------------------------------------------------------------- requests

Result<void> Scheduler::submit(PromptRequest request) {
  TRY(check(request));
  waiting_.add(std::move(request));
  return {};
}

Result<PromptRequest> Scheduler::fill_request(LeaseId lease, std::vector<TokenId> text) const {
  if (limits_.state_blocks > 0) {
    return fail(Errc::UnsupportedModel,
                "the model has recurrent layers, and their state is not published with a text; "
                "send the text with each prompt");
  }
  return publications_.fill_request(lease, std::move(text));
}

Result<void> Scheduler::check(const PromptRequest& request) const {
  const auto found = tenancies_.find(request.lease);
  if (found == tenancies_.end()) {
    return fail(Errc::LeaseFenced, fmt::format("lease {} is not live on this worker; acquire a "
                                               "new lease",
                                               to_string(request.lease)));
  }
  const Tenancy& tenancy = found->second;
  if (tenancy.tenant != request.tenant) {
    return fail(Errc::UnknownTenant,
                fmt::format("lease {} does not belong to tenant {}; use the token of that lease",
                            to_string(request.lease), request.tenant.value));
  }
  const RequestId& id = request.engine_request_id;
  if (running_.find(id) != nullptr || waiting_.contains(id)) {
    return fail(Errc::BadRequest,
                fmt::format("request {} is already running; choose another id", id.value));
  }
  TRY(admission_.fit().check(request));
  return waiting_.check_room(tenancy);
}

Result<void> Scheduler::cancel(const RequestId& engine_request_id) {
  const Completed how{.reason = CompletionReason::Cancelled};
  if (Sequence* const sequence = running_.find(engine_request_id)) {
    end_sequence(*sequence, how);
    return {};
  }
  if (waiting_.end(engine_request_id, how)) return {};
  return fail(Errc::UnknownRequest,
              fmt::format("request {} is neither waiting nor running", engine_request_id.value));
}

/// Fails while a transfer is pending: the transfer's source blocks are free already but not copied
/// yet, so a move could overwrite them.
Result<Move> Scheduler::begin_move(const RequestId& engine_request_id, LeaseId to) {
  Sequence* const sequence = running_.find(engine_request_id);
  const std::string id = engine_request_id.value;
  if (sequence == nullptr && !waiting_.contains(engine_request_id))
    return fail(Errc::UnknownRequest, fmt::format("request {} is neither waiting nor running", id));
  if (sequence == nullptr)
    return fail(Errc::QueueFull, fmt::format("request {} waits; move it when it runs again", id));
  const bool is_in_place = sequence->blocks.state() != KvState::Returning && transfers_.empty();
  if (is_in_place) return moves_.begin(*sequence, to);
  return fail(Errc::QueueFull, "blocks of the worker are being copied; retry in a moment");
}

// --------------------------------------------------------------------------------------- leases

void Scheduler::set_quota(const wire::TenantQuota& quota) {
  tenancies_.set_quota(quota);
  kv_.evict_above(quota.tenant, quota.max_blocks);
}

void Scheduler::end_lease(LeaseId lease, const Completed& how) {
  std::vector<std::pair<Sequence*, FailureScope>> ending;
  for (const auto& sequence : running_)
    if (const auto scope = sequence->scope_of(lease)) ending.emplace_back(sequence.get(), *scope);
  for (const auto& [sequence, scope] : ending) {
    Completed end = how;
    if (end.revocation) end.revocation->scope = scope;
    end_sequence(*sequence, end);
  }
  waiting_.end_users(lease, how);
  if (!tenancies_.contains(lease)) return;
  Tenancy& tenancy = tenancies_.at(lease);
  waiting_.end_all(tenancy, how);
  tenancy.prefixes.drop_users();
  kv_.note_gone(tenancy.prefixes);
  publications_.lease_ends(tenancy);
  tenancies_.erase(lease);
}

// -------------------------------------------------------------------------------------- queries

bool Scheduler::has_users(LeaseId adapter) const {
  return waiting_.has_users(adapter) ||
         std::ranges::any_of(running_.all(), [adapter](const auto& sequence) {
           return uses(sequence->request, adapter);
         });
}

bool Scheduler::has_work() const {
  return !running_.empty() || tenancies_.waiting_count() > 0;
}

}  // namespace leasehold
