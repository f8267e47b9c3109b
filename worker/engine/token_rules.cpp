#include "worker/engine/token_rules.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace leasehold {

TokenRules::TokenRules(const PromptRequest& request, const Tokenizer& tokenizer)
    : request_(&request), tokenizer_(&tokenizer) {
  if (!request.sampling.stop.empty()) text_.emplace(tokenizer, request.sampling.stop);
  if (!request.constraint) return;
  matcher_.emplace(request.constraint.grammar);
  state_ = matcher_->start();
}

Result<TokenRules> TokenRules::create(const PromptRequest& request, const Tokenizer& tokenizer) {
  TokenRules rules(request, tokenizer);
  for (std::size_t i = 0; i < request.emitted.size(); ++i) {
    rules.accept(request.emitted[i]);
    if (!rules.matcher_ || rules.state_ != GrammarMatcher::kDead) continue;
    return fail(
        Errc::BadRequest,
        fmt::format(
            "emitted token {} does not fit the grammar; send the tokens that were delivered", i));
  }
  return rules;
}

std::optional<CompletionReason> TokenRules::over() const {
  if (text_ && text_->is_stopped()) return CompletionReason::StopSequence;
  if (matcher_ && matcher_->must_end(state_)) return CompletionReason::EndOfSequence;
  return std::nullopt;
}

std::optional<CompletionReason> TokenRules::ends_before(TokenId token) const {
  const SamplingParams& params = request_->sampling;
  if (tokenizer_->is_end_token(token) && !params.ignore_eos) return CompletionReason::EndOfSequence;
  if (std::ranges::find(params.stop_tokens, token) == params.stop_tokens.end()) return std::nullopt;
  return CompletionReason::StopSequence;
}

void TokenRules::accept(TokenId token) {
  if (text_) (void)text_->push(token);
  if (!matcher_) return;
  const auto [state, forgot_others] = matcher_->retain(state_);
  state_ = state;
  if (forgot_others) masks_.clear();
  for (const char c : tokenizer_->piece(token))
    state_ = matcher_->next(state_, static_cast<std::uint8_t>(c));
}

Result<const TokenMask*> TokenRules::allowed() {
  if (!matcher_) return nullptr;
  const auto [state, forgot_others] = matcher_->retain(state_);
  state_ = state;
  if (forgot_others) masks_.clear();
  const auto known = masks_.find(state_);
  if (known != masks_.end()) return &known->second;
  if (masks_.size() == kMaxMasks) masks_.clear();
  TokenMask mask = make_mask();
  if (!matcher_->overflowed()) return &(masks_[state_] = std::move(mask));
  return fail(
      Errc::BadRequest,
      fmt::format("the grammar has more than {} parses of this text, or more than {} states; "
                  "make it less ambiguous",
                  GrammarMatcher::kMaxStacks, GrammarMatcher::kMaxStates));
}

TokenMask TokenRules::make_mask() {
  const GrammarVocabulary& vocabulary = *request_->constraint.vocabulary;
  TokenMask mask(vocabulary.pieces.n_vocab());
  const auto next = [this](GrammarMatcher::State from, std::uint8_t byte) {
    return matcher_->next(from, byte);
  };
  vocabulary.pieces.walk(state_, GrammarMatcher::kDead, next, mask);
  if (matcher_->may_end(state_))
    for (const TokenId end : vocabulary.end_tokens) mask.add(end);
  return mask;
}

}  // namespace leasehold
