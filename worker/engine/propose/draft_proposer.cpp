#include "worker/engine/propose/draft_proposer.hpp"

#include <algorithm>
#include <utility>

#include "common/expects.hpp"
#include "worker/engine/gate_numbers.hpp"

namespace leasehold {
namespace {

TokenId largest(std::span<const float> logits) {
  return static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin());
}

}  // namespace

BackendLimits DraftProposer::backend_limits(const BackendLimits& engine, const Config& config) {
  const BackendLimits draft =
      Transformer::backend_limits(config.model, config.layout().step_limits(config.speculate));
  return {.max_rows = std::max(engine.max_rows, draft.max_rows),
          .max_context = std::max(engine.max_context, draft.max_context),
          .n_heads = std::max(engine.n_heads, draft.n_heads),
          .head_dim = std::max(engine.head_dim, draft.head_dim),
          .max_width = std::max(engine.max_width, draft.max_width),
          .n_experts = std::max(engine.n_experts, draft.n_experts),
          .n_experts_used = std::max(engine.n_experts_used, draft.n_experts_used),
          .attention_scratch_bytes = engine.attention_scratch_bytes,
          .max_logit_rows = std::max(engine.max_logit_rows, draft.max_logit_rows),
          .rope_dim = std::max(engine.rope_dim, draft.rope_dim),
          .n_vocab = std::max(engine.n_vocab, draft.n_vocab),
          .n_kv_groups = std::max(engine.n_kv_groups, draft.n_kv_groups),
          .state_blocks = std::max(engine.state_blocks, draft.state_blocks),
          .state_key_dim = std::max(engine.state_key_dim, draft.state_key_dim),
          .adapter_slots = engine.adapter_slots,
          .scratch_bytes = engine.scratch_bytes + draft.scratch_bytes};
}

DraftProposer::DraftProposer(const Config& config, Dependencies dependencies)
    : config_(config),
      layout_(config.layout()),
      usual_rows_(layout_.usual_rows(config.speculate)),
      deps_(std::move(dependencies)),
      transformer_(config.model, config.kv_type, layout_.step_limits(config.speculate),
                   *deps_.backend),
      zeros_(layout_.kv.block_size_bytes()) {}

void DraftProposer::bind(Weights weights, DraftMemory memory) {
  expects(memory.mapping.size_bytes() >= layout_.size_bytes(), "every text has its positions");
  leases_.assign(weights.leases().begin(), weights.leases().end());
  leases_.push_back(memory.lease);
  weights_.emplace(std::move(weights));
  Leased<std::byte> next = memory.mapping.writable_base();
  for (std::uint32_t i = 0; i < layout_.n_texts; ++i) slots_.push_back(make_slot(next));
  memory_.emplace(std::move(memory.mapping));
  is_disabled_ = false;
}

/// The next slot of the memory, from `next` on.
DraftProposer::Slot DraftProposer::make_slot(Leased<std::byte>& next) const {
  const auto take = [&](std::uint32_t count) {
    std::vector<Leased<std::byte>> blocks;
    for (; count > 0; --count) {
      blocks.push_back(next);
      next = next + static_cast<std::ptrdiff_t>(zeros_.size());
    }
    return blocks;
  };
  std::vector<Leased<std::byte>> blocks = take(layout_.kv_blocks());
  return {
      .blocks = std::move(blocks), .state = DraftState(take(layout_.state_blocks())), .read = {}};
}

bool DraftProposer::is_live() const {
  return std::ranges::all_of(leases_,
                             [](const LeaseDependency& each) { return leasehold::is_live(each); });
}

std::span<const LeaseDependency> DraftProposer::leases() const {
  if (is_disabled_) return {};
  return leases_;
}

bool DraftProposer::unmap(LeaseId lease) {
  if (leases_.empty()) return false;
  const bool is_weights = weights_->unmap(lease);
  const std::scoped_lock lock(mutex_);
  if (id_of(leases_.back()) != lease || !memory_) return is_weights;
  memory_.reset();
  return true;
}

// --------------------------------------------------------------------------------------- the slots

void DraftProposer::retain(Running running) {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    const auto uses_it = [&](const auto& sequence) {
      return sequence->stop_slot == i && sequence->admission == slot.admission;
    };
    if (slot.admission != 0 && std::ranges::none_of(running, uses_it)) clear(slot);
  }
}

/// Clears one block per unit, so that no unit takes longer than those of a step. Once the lease has
/// ended, the broker clears the memory.
void DraftProposer::clear(Slot& slot) {
  UnreportedRefusals refusals(*deps_.observer);
  GateSet gates(next_gate_number(), no_stops_, refusals);
  gates.add_engine_lease(leases_.back());
  gates.add_sequence({});
  const std::uint32_t written =
      (slot.written + KvLayout::kBlockTokens - 1) / KvLayout::kBlockTokens;
  for (std::uint32_t i = 0; i < slot.blocks.size(); ++i)
    if (i % layout_.blocks_per_group < written) clear_block(slot.blocks[i], gates);
  if (written > 0)
    for (const Leased<std::byte> block : slot.state.blocks()) clear_block(block, gates);
  slot.state.reset();
  slot.admission = 0;
  slot.read.clear();
  slot.written = 0;
}

void DraftProposer::clear_block(Leased<std::byte> block, const GateSet& gates) {
  const LeasedPiece piece{.to = block, .bytes = zeros_};
  deps_.engine_gate->run(
      gates, {LaunchSite::KvAppend, 0, Touches::TenantMemory},
      [&](const LaunchPermit& permit) { deps_.backend->write(permit, {&piece, 1}); });
}

// --------------------------------------------------------------------------------------- proposals

void DraftProposer::propose(std::span<const PlannedRows> parts, std::uint32_t most,
                            const GateSet* gates) {
  if (is_disabled_ || gates == nullptr) return;
  begin(parts, most);
  while (!gates->engine_refused() && plan_pass()) {
    const LaunchStatus status =
        transformer_.forward(*weights_, {.gates = gates,
                                         .rows = pass_.rows,
                                         .tokens = pass_.tokens,
                                         .block_tables = pass_.block_tables,
                                         .logit_rows = pass_.logit_rows,
                                         .state_tables = pass_.state_tables});
    take(status.live, *gates);
  }
  if (gates->engine_refused()) disable();
}

/// Sorts the texts with the fewest unprocessed tokens first, so that a long prefill gets only the
/// rows that the other texts leave.
void DraftProposer::begin(std::span<const PlannedRows> parts, std::uint32_t most) {
  drafts_.clear();
  const std::uint32_t n_groups = layout_.kv.n_groups();
  pass_.block_tables.assign(n_groups * parts.size(), {});
  pass_.state_tables.assign(parts.size(), {});
  for (std::uint32_t i = 0; i < parts.size(); ++i) {
    Sequence& sequence = *parts[i].sequence;
    const std::uint32_t wanted = std::min({most, parts[i].n_proposed, positions_left(sequence)});
    if (wanted == 0) continue;
    Slot& slot = slots_[sequence.stop_slot];
    slot.admission = sequence.admission;
    if (!slot.start(sequence.tokens)) continue;
    for (std::uint32_t group = 0; group < n_groups; ++group)
      pass_.block_tables[group * parts.size() + i] = slot.table(group, layout_.blocks_per_group);
    drafts_.push_back({.sequence = &sequence, .slot = &slot, .index = i, .most = wanted});
  }
  std::ranges::stable_sort(drafts_, {}, &Draft::pending);
}

/// Forgets what was read of other tokens than the text's. Returns false if the text is the same as
/// at the last call and its recurrent state cannot go back by a position.
bool DraftProposer::Slot::start(std::span<const TokenId> text) {
  const auto equal = static_cast<std::size_t>(std::ranges::mismatch(read, text).in1 - read.begin());
  // The last known token is computed in any case, because its row has the logits.
  const std::optional<std::size_t> kept = state.start(std::min(equal, text.size() - 1));
  if (kept) read.resize(*kept);
  return kept.has_value();
}

/// The number of proposals after this text for which the draft has positions. The last proposal
/// needs no position.
std::uint32_t DraftProposer::positions_left(const Sequence& sequence) const {
  const std::size_t known = sequence.tokens.size();
  if (sequence.stop_slot >= slots_.size() || known > config_.model.n_context) return 0;
  return config_.model.n_context - static_cast<std::uint32_t>(known) + 1;
}

std::size_t DraftProposer::Draft::pending() const {
  return sequence->tokens.size() + sequence->proposals.size() - slot->read.size();
}

TokenId DraftProposer::Draft::token_at(std::size_t position) const {
  const std::size_t known = sequence->tokens.size();
  return position < known ? sequence->tokens[position] : sequence->proposals[position - known];
}

/// Collects the rows of the next pass. Returns false when there are none.
bool DraftProposer::plan_pass() {
  pass_.rows.clear();
  pass_.tokens.clear();
  pass_.logit_rows.clear();
  std::size_t left = kDraftPrefillRows;
  for (Draft& draft : drafts_) {
    draft.n_rows = 0;
    if (draft.is_over) continue;
    const std::size_t pending = draft.pending();
    const bool is_usual = pending <= usual_rows_;
    const std::size_t n_rows = is_usual ? pending : std::min(pending, left);
    if (!is_usual) left -= n_rows;
    add_rows(draft, static_cast<std::uint32_t>(n_rows));
  }
  return !pass_.rows.empty();
}

void DraftProposer::add_rows(Draft& draft, std::uint32_t n_rows) {
  const auto first = static_cast<std::uint32_t>(draft.slot->read.size());
  draft.n_rows = n_rows;
  draft.draws = n_rows > 0 && n_rows == draft.pending();
  pass_.state_tables[draft.index] = draft.slot->state.table();
  for (std::uint32_t i = 0; i < n_rows; ++i) {
    pass_.rows.push_back({draft.index, first + i});
    pass_.tokens.push_back(draft.token_at(first + i));
  }
  if (draft.draws) pass_.logit_rows.push_back(static_cast<std::uint32_t>(pass_.rows.size() - 1));
  draft.slot->written = std::max(draft.slot->written, first + n_rows);
}

/// Records the computed rows of sequences that are still live, and draws their proposals. A
/// sequence whose prefill is incomplete continues in the next call of `propose`.
void DraftProposer::take(SequenceMask live, const GateSet& gates) {
  std::uint32_t next_logits = 0;
  for (Draft& draft : drafts_) {
    if (draft.is_over) continue;
    const std::uint32_t logit_row = next_logits;
    if (draft.draws) ++next_logits;
    draft.is_over = true;
    if (draft.n_rows == 0 || (live >> draft.index & 1) == 0) continue;
    Slot& slot = *draft.slot;
    for (std::uint32_t i = 0; i < draft.n_rows; ++i)
      slot.read.push_back(draft.token_at(slot.read.size()));
    slot.state.advance(slot.read.size(), slot.read.size() <= draft.sequence->tokens.size());
    if (!draft.draws || !draw(draft, logit_row, gates)) continue;
    draft.is_over = draft.sequence->proposals.size() >= draft.most;
  }
}

bool DraftProposer::draw(Draft& draft, std::uint32_t logit_row, const GateSet& gates) {
  bool is_drawn = false;
  const auto draw_if_live = [&](const LaunchPermit& permit) {
    if (!permit.is_live(draft.index)) return;
    draft.sequence->proposals.push_back(largest(transformer_.logits(logit_row)));
    is_drawn = true;
  };
  deps_.engine_gate->run(gates, {LaunchSite::Sampling, 0, Touches::WeightsAndScratch},
                         draw_if_live);
  return is_drawn;
}

/// Keeps the proposals made before the refusal: a proposal never decides a token, because the
/// engine draws its own.
void DraftProposer::disable() {
  is_disabled_ = true;
  const auto lost = std::ranges::find_if(
      leases_, [](const LeaseDependency& each) { return !leasehold::is_live(each); });
  if (deps_.on_lost && lost != leases_.end()) deps_.on_lost(id_of(*lost));
}

}  // namespace leasehold
