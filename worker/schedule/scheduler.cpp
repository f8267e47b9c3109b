#include "worker/schedule/scheduler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bitset>

#include "common/expects.hpp"
#include "common/fair_shares.hpp"
#include "ipc/segment/gate_set.hpp"
#include "worker/kv/sequence_record.hpp"

namespace leasehold {
// ------------------------------------------------------------------------------------- the tick

void Scheduler::admit(TimePoint now) {
  spill_.check_timeouts(now);
  drop_expired(now);
  tenancies_.settle_active();
  if (transfers_.empty()) admit_least_served();
}

StepPlan Scheduler::plan() {
  StepPlan plan = plan_rows();
  // Planning again gives a victim's blocks to the sequence that lacked them before any other use.
  if (relieve_starved()) plan = plan_rows();
  for (auto& [lease, tenancy] : tenancies_) tenancy.growth_denied.reset();
  planned_.proposed = proposals_.add_rows(plan, planned_.decode);
  spill_.plan_pieces();
  return plan;
}

StepPlan Scheduler::plan_rows() {
  StepPlan plan;
  starved_.clear();
  for (auto& [lease, tenancy] : tenancies_) tenancy.blocks_wanted = 0;
  planned_ = {};
  for (const auto& sequence : running_) {
    if (sequence->pending() != 1 || planned_.decode == limits_.token_budget) continue;
    planned_.decode += add_part(*sequence, sequence->rows_ready(), plan);
  }
  for (const PlannedRows& part : prefill_least_served(limits_.token_budget - planned_.decode)) {
    const std::uint32_t n_rows = add_part(*part.sequence, part.n_rows, plan);
    planned_.prefill += static_cast<std::uint32_t>(part.sequence->work_of(n_rows));
  }
  return plan;
}

/// Returns the rows that were planned.
std::uint32_t Scheduler::add_part(Sequence& sequence, std::uint32_t n_rows, StepPlan& plan) {
  if (n_rows == 0) return 0;
  if (const auto starved = kv_.reserve_rows(sequence, n_rows)) {
    starved_.push_back(*starved);
    return 0;
  }
  plan.parts.push_back({&sequence, n_rows, n_rows == sequence.pending()});
  return n_rows;
}

void Scheduler::commit(const PlannedRows& part, std::vector<DrawnToken> drawn) {
  expects(transfers_.empty(), "blocks are copied before rows are computed");
  Sequence& sequence = *part.sequence;
  Tenancy& tenancy = tenancy_of(sequence);
  const std::uint32_t rows_kept = part.rows_kept(drawn.size());
  proposals_.note_drawn(part, drawn);
  std::uint64_t used = sequence.prompt_rows(rows_kept);
  for (DrawnToken& each : drawn) {
    if (!each.is_text) continue;
    const TokenId token = each.sampled.token;
    events_.add(Token{sequence.request.engine_request_id, token, sequence.emitted(),
                      std::move(each.sampled.logprobs)});
    sequence.tokens.push_back(token);
    ++used;
  }
  sequence.request.unused_tokens -= std::min(used, sequence.request.unused_tokens);
  const TenantAccount& account = *tenancy.account;
  *account.counter += TokenCounters::cost(sequence.work_of(part.n_rows), account.quota.weight);
  sequence.blocks.commit(sequence.blocks.committed() + rows_kept);
  sequence.blocks.cache_full({&tenancy.tenant, sequence.tokens}, tenancy.prefixes);
  tenancy.served_tokens += rows_kept;
  sequence.blocks.trim(static_cast<std::uint32_t>(sequence.tokens.size()), tenancy.pool);
  if (drawn.empty()) return;
  if (drawn.back().ends) return end_sequence(sequence, {.reason = *drawn.back().ends});
  if (const auto full = capacity_end(sequence)) end_sequence(sequence, {.reason = *full});
}

std::optional<CompletionReason> Scheduler::capacity_end(const Sequence& sequence) const {
  if (sequence.emitted() >= sequence.request.max_emitted_tokens)
    return CompletionReason::MaxTokensReached;
  if (sequence.tokens.size() >= limits_.max_context) return CompletionReason::ContextFull;
  return std::nullopt;
}

void Scheduler::end_sequence(Sequence& sequence, Completed how, bool already_delivered) {
  if (is_moved_out(sequence.blocks.state())) return end_swapped(sequence, how, already_delivered);
  how.engine_request_id = sequence.request.engine_request_id;
  how.emitted_tokens = sequence.emitted();
  how.cached_tokens = sequence.request.cached;
  const bool is_fill = tenancy_of(sequence).is_shared;
  tenancies_.give_back_tokens(sequence.request, sequence.request.unused_tokens);
  free_blocks(sequence, how);
  if (!already_delivered && !is_fill) events_.add(std::move(how));
  stop_running(sequence);
}

std::unique_ptr<Sequence> Scheduler::stop_running(Sequence& sequence) {
  Tenancy& tenancy = tenancy_of(sequence);
  --tenancy.running;
  tenancies_.note_change(tenancy.tenant);
  return running_.remove(sequence);
}

void Scheduler::note_duration(Duration step) {
  if (planned_.proposed == 0) prefill_limit_.note(step, planned_);
  proposals_.note_duration(step, planned_);
}

// ------------------------------------------------------------------------------------ admission

void Scheduler::drop_expired(TimePoint now) {
  if (now < next_expiry_) return;
  next_expiry_ = kNever;
  const auto expired = [now](const PromptRequest& request) {
    return request.deadline && *request.deadline <= now;
  };
  for (auto& [lease, tenancy] : tenancies_) {
    for (const PromptRequest& request : tenancy.waiting) {
      if (expired(request))
        complete_waiting(request, {.reason = CompletionReason::DeadlineExceeded});
    }
    std::erase_if(tenancy.waiting, expired);
    for (const PromptRequest& request : tenancy.waiting) note_deadline(request);
  }
}

void Scheduler::note_deadline(const PromptRequest& request) {
  if (request.deadline) next_expiry_ = std::min(next_expiry_, *request.deadline);
}

/// The sequence of the first waiting request. It is either swapped, or kept in `head` while it
/// lacks blocks, so that its text is not copied in each tick.
Sequence& Scheduler::head_of(Tenancy& tenancy) const {
  const PromptRequest& request = tenancy.waiting.front();
  WaitingHead& head = tenancy.head;
  if (head.arrival != request.arrival) head = {.arrival = request.arrival};
  const auto swapped = tenancy.swapped.find(request.engine_request_id);
  if (swapped != tenancy.swapped.end()) return *swapped->second;
  if (!head.sequence) head.sequence = std::make_unique<Sequence>(request, limits_.tokens_per_block);
  return *head.sequence;
}

std::unique_ptr<Sequence> Scheduler::take_head(Tenancy& tenancy) {
  auto swapped = tenancy.swapped.extract(tenancy.waiting.front().engine_request_id);
  WaitingHead head = std::exchange(tenancy.head, {});
  return swapped ? std::move(swapped.mapped()) : std::move(head.sequence);
}

/// Cached tokens are not charged, so they are returned to the tenant's allowance at once.
void Scheduler::note_cached(Sequence& sequence) {
  PromptRequest& request = sequence.request;
  request.cached = request.charged = sequence.blocks.committed();
  const auto given = std::min<std::uint64_t>(request.cached, request.unused_tokens);
  tenancies_.give_back_tokens(request, given);
  request.unused_tokens -= given;
}

/// Precondition: a request of the lease waits.
Scheduler::Admission Scheduler::admit_one(Tenancy& tenancy) {
  const Admission admission = reserve_first_blocks(head_of(tenancy), tenancy);
  if (admission != Admission::Admitted) return admission;
  std::unique_ptr<Sequence> sequence = take_head(tenancy);
  sequence->stop_slot = transfers_.free_stop_slot();
  sequence->admission = ++admissions_;
  if (!sequence->request.was_admitted()) note_cached(*sequence);
  sequence->request.block_limit = tenancies_.limit_of(sequence->request);
  TenantAccount& tenant = *tenancy.account;
  ++tenant.admitted;
  tenant.last_admission = admissions_;
  tenant.last_admitted = tenancy.lease;
  tenancies_.note_change(tenancy.tenant);
  tenancy.waiting.pop_front();
  ++tenancy.running;
  const PromptRequest& request = sequence->request;
  if (request.rebound_from) {
    events_.add(Rebound{request.engine_request_id, *request.rebound_from, request.lease,
                        static_cast<std::uint32_t>(request.prompt.size()),
                        static_cast<std::uint32_t>(request.emitted.size())});
  }
  running_.add(std::move(sequence));
  return Admission::Admitted;
}

// ------------------------------------------------------------------------------------- requests

Result<void> Scheduler::submit(PromptRequest request) {
  TRY(check(request));
  tenancies_.note_change(request.tenant);
  request.arrival = ++arrivals_;
  enqueue(std::move(request));
  return {};
}

void Scheduler::enqueue(PromptRequest request) {
  note_deadline(request);
  std::deque<PromptRequest>& waiting = tenancies_.at(request.lease).waiting;
  const auto after = std::ranges::upper_bound(waiting, request, is_admitted_before);
  waiting.insert(after, std::move(request));
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
  if (id_in_use(request.engine_request_id)) {
    return fail(Errc::BadRequest, fmt::format("request {} is already running; choose another id",
                                              request.engine_request_id.value));
  }
  TRY(check_sizes(request));
  if (tenancy.waiting.size() >= limits_.max_waiting_per_lease) {
    return fail(Errc::QuotaConcurrent,
                fmt::format("{} requests of lease {} are waiting; retry when one ends",
                            tenancy.waiting.size(), to_string(request.lease)));
  }
  const ResourceShare share{.held = tenancies_.waiting_of(request.tenant),
                            .taken = waiting_count(),
                            .capacity = limits_.max_waiting};
  if (may_take_more(share)) return {};
  return fail(Errc::QueueFull,
              fmt::format("{} requests of tenant {} are waiting, its share of a queue of {} that "
                          "holds {}; retry later",
                          share.held, request.tenant.value, share.capacity, share.taken));
}

Result<void> Scheduler::check_sizes(const PromptRequest& request) const {
  TRY(check_sampling(request.sampling));
  if (request.prompt.empty()) return fail(Errc::BadRequest, "the prompt is empty");
  const bool emits_none = request.max_emitted_tokens == 0;
  const bool is_fill = tenancies_.at(request.lease).is_shared;
  if (emits_none != is_fill || request.max_emitted_tokens < request.emitted.size()) {
    return fail(
        Errc::BadRequest,
        fmt::format("max_emitted_tokens is {}, and {} tokens were emitted before; ask for more",
                    request.max_emitted_tokens, request.emitted.size()));
  }
  const std::size_t known = request.prompt.size() + request.emitted.size();
  if (!fits_context(request, limits_.max_context)) {
    return fail(
        Errc::PromptTooLong,
        fmt::format("the prompt has {} tokens, and the model's context holds {}; shorten it", known,
                    limits_.max_context));
  }
  return check_blocks(request);
}

std::uint64_t Scheduler::most_positions(const PromptRequest& request) const {
  return std::min<std::uint64_t>(std::uint64_t{request.max_emitted_tokens} + request.prompt.size(),
                                 limits_.max_context);
}

/// A continued text keeps its token limit, and waits for blocks that other workers hold. The limit
/// never falls below min_tokens, so that `check` refuses a text that cannot have that many.
void Scheduler::shorten(PromptRequest& request, std::uint64_t most_tokens) const {
  if (!request.may_shorten) return;
  std::uint32_t blocks = tenancies_.most_blocks_of(request.tenant);
  if (request.emitted.empty()) blocks = std::min(blocks, tenancies_.limit_of(request));
  const std::uint64_t for_text = blocks - std::min(blocks, limits_.record_blocks_of(request));
  const std::uint64_t positions = std::min(
      {for_text * limits_.tokens_per_block, std::uint64_t{limits_.max_context}, most_tokens});
  const std::uint64_t more = positions - std::min<std::uint64_t>(positions, request.prompt.size());
  const std::uint64_t most =
      std::max({more, std::uint64_t{1}, std::uint64_t{request.emitted.size()},
                std::uint64_t{request.sampling.min_tokens}});
  request.max_emitted_tokens =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(request.max_emitted_tokens, most));
}

/// A preempted request may continue when its present text fits.
Result<void> Scheduler::check_blocks(const PromptRequest& request) const {
  const std::uint32_t allowed = tenancies_.limit_of(request);
  const std::uint64_t most =
      request.was_admitted() ? known_tokens(request) : most_positions(request);
  const std::uint32_t blocks =
      limits_.blocks_for(static_cast<std::uint32_t>(most)) + limits_.record_blocks_of(request);
  const std::uint32_t ever =
      request.was_admitted() ? allowed : tenancies_.most_blocks_of(request.tenant);
  if (blocks <= std::min(allowed, ever)) return {};
  if (blocks > ever) {
    return fail(
        Errc::QuotaBlocks,
        fmt::format("up to {} tokens need {} KV blocks, and tenant {} may hold {} here; ask "
                    "for fewer tokens",
                    most, blocks, request.tenant.value, ever));
  }
  return std::unexpected(
      Error{.code = Errc::QuotaBlocks,
            .detail = fmt::format("up to {} tokens need {} KV blocks, and tenant {} may hold {} "
                                  "here while it has leases on other workers; retry when one ends",
                                  most, blocks, request.tenant.value, allowed),
            .retry_after_ms = kOtherLeaseEnds_ms});
}

bool Scheduler::id_in_use(const RequestId& engine_request_id) const {
  if (running_.find(engine_request_id) != nullptr) return true;
  for (const auto& [lease, tenancy] : tenancies_) {
    for (const PromptRequest& waiting : tenancy.waiting) {
      if (waiting.engine_request_id == engine_request_id) return true;
    }
  }
  return false;
}

Result<void> Scheduler::cancel(const RequestId& engine_request_id) {
  if (Sequence* const sequence = running_.find(engine_request_id)) {
    end_sequence(*sequence, {.reason = CompletionReason::Cancelled});
    return {};
  }
  for (auto& [lease, tenancy] : tenancies_) {
    const auto found =
        std::ranges::find(tenancy.waiting, engine_request_id, &PromptRequest::engine_request_id);
    if (found == tenancy.waiting.end()) continue;
    complete_waiting(*found, {.reason = CompletionReason::Cancelled});
    tenancy.waiting.erase(found);
    return {};
  }
  return fail(Errc::UnknownRequest,
              fmt::format("request {} is neither waiting nor running", engine_request_id.value));
}

// -------------------------------------------------------------------------------------- queries

bool Scheduler::has_work() const {
  return !running_.empty() || waiting_count() > 0;
}

void Scheduler::transfer_done(const Sequence& sequence, Duration copying) {
  const SwapTransfer made = transfers_.take(sequence);
  if (made.pieces.empty()) return swap_.copied(made, copying);
  spill_.copied(made);
}

void Scheduler::end_swapped(Sequence& sequence, const Completed& how, bool already_delivered) {
  std::deque<PromptRequest>& waiting = tenancy_of(sequence).waiting;
  const auto found = std::ranges::find(waiting, sequence.request.engine_request_id,
                                       &PromptRequest::engine_request_id);
  complete_waiting(*found, how, already_delivered);
  waiting.erase(found);
}

Tenancy& Scheduler::tenancy_of(const Sequence& sequence) {
  return tenancies_.at(sequence.request.lease);
}

}  // namespace leasehold
