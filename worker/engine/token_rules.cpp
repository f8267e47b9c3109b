#include "worker/engine/token_rules.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace leasehold {

std::optional<TokenMask> drawable_tokens(const Tokenizer& tokenizer) {
  const std::span<const TokenId> suppressed = tokenizer.suppressed_tokens();
  if (suppressed.empty()) return std::nullopt;
  TokenMask mask = TokenMask::all(tokenizer.n_vocab());
  for (const TokenId token : suppressed) mask.remove(token);
  return mask;
}

TokenRules::TokenRules(const PromptRequest& request, const Tokenizer& tokenizer,
                       const TokenMask* drawable, std::size_t token_units)
    : request_(&request),
      tokenizer_(&tokenizer),
      drawable_(drawable),
      token_units_(token_units),
      budget_{token_units * (request.emitted.size() + 1)},
      n_text_(request.emitted.size()) {
  if (!request.sampling.stop.empty()) text_.emplace(tokenizer, request.sampling);
  if (request.constraint) matcher_.emplace(request.constraint.grammar);
  if (!matcher_ && !text_) n_accepted_ = request.emitted.size();
  if (is_too_short()) forbid_ends();
}

/// A grammar is not combined with min_tokens, so no other mask applies.
void TokenRules::forbid_ends() {
  const SamplingParams& params = request_->sampling;
  continuing_ = drawable_ != nullptr ? *drawable_ : TokenMask::all(tokenizer_->n_vocab());
  for (std::size_t i = 0; i < continuing_.size(); ++i) {
    const auto token = static_cast<TokenId>(i);
    if (!params.ignore_eos && tokenizer_->is_end_token(token)) continuing_.remove(token);
  }
  for (const TokenId stop : params.stop_tokens) continuing_.remove(stop);
}

// ----------------------------------------------------------------------------- the preparation

Result<void> TokenRules::prepare(WorkBudget& slice) {
  if (is_ready()) return {};
  WorkBudget part{matcher_ ? std::min(slice.left, budget_.left) : slice.left};
  const Result<void> fits = work(part);
  slice.spend(part.spent);
  budget_.spend(part.spent);
  TRY(fits);
  TRY(check_work());
  if (is_ready()) budget_ = {token_units_};
  return {};
}

bool TokenRules::is_ready() const {
  return has_accepted_emitted() && (!matcher_ || mask_ != nullptr || over());
}

Result<void> TokenRules::work(WorkBudget& slice) {
  if (!start(slice)) return {};
  TRY(accept_emitted(slice));
  if (!is_ready() && has_accepted_emitted()) make_mask(slice);
  return {};
}

bool TokenRules::start(WorkBudget& slice) {
  if (!matcher_ || is_started()) return true;
  state_ = matcher_->start(slice);
  return is_started();
}

Result<void> TokenRules::accept_emitted(WorkBudget& slice) {
  while (!has_accepted_emitted() && slice.left > 0) {
    if (matcher_) make_space(slice);
    if (!follow(request_->emitted[n_accepted_], slice)) return {};
    if (matcher_ && state_ == GrammarMatcher::kDead && !matcher_->overflowed()) {
      return fail(
          Errc::BadRequest,
          fmt::format(
              "emitted token {} does not fit the grammar; send the tokens that were delivered",
              n_accepted_));
    }
    ++n_accepted_;
  }
  return {};
}

/// Advances the state by one token. Returns false when the slice is used up; the same call then
/// continues with the next slice.
bool TokenRules::follow(TokenId token, WorkBudget& slice) {
  const std::string_view piece = tokenizer_->piece(token);
  for (; matcher_ && n_bytes_ < piece.size(); ++n_bytes_) {
    const State next = matcher_->next(state_, static_cast<std::uint8_t>(piece[n_bytes_]), slice);
    if (next == GrammarMatcher::kUnfinished) return false;
    state_ = next;
  }
  n_bytes_ = 0;
  if (text_) (void)text_->push(token);
  slice.spend(1 + piece.size());
  return true;
}

void TokenRules::make_mask(WorkBudget& slice) {
  const GrammarVocabulary& vocabulary = *request_->constraint.vocabulary;
  if (!unfinished_) {
    make_space(slice);
    unfinished_.emplace(vocabulary.pieces.walk_from(state_),
                        TokenMask(vocabulary.pieces.n_vocab()));
  }
  auto& [walk, mask] = *unfinished_;
  if (!vocabulary.pieces.advance(walk, *matcher_, mask, slice)) return;
  if (matcher_->may_end(state_))
    for (const TokenId end : vocabulary.end_tokens) mask.add(end);
  for (const TokenId token : tokenizer_->suppressed_tokens()) mask.remove(token);
  if (masks_.size() == kMaxMasks) masks_.clear();
  mask_ = &(masks_[state_] = std::move(mask));
  unfinished_.reset();
}

/// Bounds the matcher's stored states before those of another token are computed.
void TokenRules::make_space(WorkBudget& slice) {
  const auto [state, forgot_others] = matcher_->retain(state_, slice);
  state_ = state;
  if (forgot_others) masks_.clear();
}

Result<void> TokenRules::check_work() const {
  if (!matcher_) return {};
  if (matcher_->overflowed()) {
    return fail(
        Errc::BadRequest,
        fmt::format("the grammar has more than {} parses of this text, or more than {} states, "
                    "most of them in rule '{}'; make it less ambiguous",
                    GrammarMatcher::kMaxStacks, GrammarMatcher::kMaxStates,
                    matcher_->busiest_rule()));
  }
  if (is_ready() || budget_.left > 0) return {};
  return fail(Errc::BadRequest,
              fmt::format("the grammar takes more than {} units of work for a token, most of them "
                          "in rule '{}'; give it fewer alternatives",
                          token_units_, matcher_->busiest_rule()));
}

// ------------------------------------------------------------------------------------ the text

const TokenMask* TokenRules::allowed() const {
  if (is_too_short()) return &continuing_;
  return matcher_ ? mask_ : drawable_;
}

std::optional<CompletionReason> TokenRules::over() const {
  if (text_ && text_->is_stopped()) return CompletionReason::StopSequence;
  if (matcher_ && is_started() && matcher_->must_end(state_))
    return CompletionReason::EndOfSequence;
  return std::nullopt;
}

std::optional<CompletionReason> TokenRules::ends_before(TokenId token) const {
  const SamplingParams& params = request_->sampling;
  if (tokenizer_->is_end_token(token) && !params.ignore_eos) return CompletionReason::EndOfSequence;
  if (std::ranges::find(params.stop_tokens, token) == params.stop_tokens.end()) return std::nullopt;
  return CompletionReason::StopSequence;
}

void TokenRules::accept(TokenId token) {
  ++n_text_;
  WorkBudget all = WorkBudget::unlimited();
  (void)follow(token, all);
  if (!matcher_) return;
  const auto known = masks_.find(state_);
  mask_ = known == masks_.end() ? nullptr : &known->second;
}

TokenRules::Mark TokenRules::mark() const {
  return {text_, state_, mask_, n_text_};
}

void TokenRules::return_to(Mark mark) {
  text_ = std::move(mark.text_);
  state_ = mark.state_;
  mask_ = mark.mask_;
  n_text_ = mark.n_text_;
}

}  // namespace leasehold
