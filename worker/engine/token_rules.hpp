/// The rules, apart from the logits, for how one request's text continues and where it ends: its
/// grammar, its stop strings and stop tokens, its minimum length, and the model's end tokens and
/// suppressed tokens.
///
/// The work on a grammar is counted, and done in slices before the sequence draws a token: first
/// the tokens of `request.emitted` are accepted, then the mask of the next token is computed. The
/// result does not depend on the size of the slices.
///
/// The state depends only on the request and its emitted tokens, so a rebind rebuilds it. A
/// rebind gets kTokenUnits for each emitted token again, so it is not refused for work that was
/// allowed under the old lease.
///
/// Lifetime: request, tokenizer and mask outlive the rules. Threads: one. Memory: usually about
/// 100 kB with a grammar, at most about 3 MB.
#pragma once

#include <map>
#include <optional>

#include "worker/schedule/request.hpp"
#include "worker/text/grammar/grammar_matcher.hpp"
#include "worker/text/sampling/generated_text.hpp"
#include "worker/text/sampling/token_mask.hpp"

namespace leasehold {

/// The tokens that the model file does not suppress; nothing if it suppresses none.
std::optional<TokenMask> drawable_tokens(const Tokenizer& tokenizer);

class TokenRules {
 public:
  /// Limit on the work for one token, in units of the matcher and of the walk over the vocabulary.
  /// Ordinary grammars use at most a thirtieth of it (worker/text/grammar/MEASUREMENTS.md).
  static constexpr std::size_t kTokenUnits = std::size_t{1} << 22;

  /// `drawable`: what `drawable_tokens` returned for the tokenizer; null: all tokens.
  TokenRules(const PromptRequest& request, const Tokenizer& tokenizer, const TokenMask* drawable,
             std::size_t token_units = kTokenUnits);

  /// Works until a token can be drawn or the slice is used up. One step of work may exceed the
  /// slice. Errors: BadRequest when no text of the grammar begins with the emitted tokens, when the
  /// grammar has too many parses of this text, or when a token takes more than the budget; the
  /// last two name the rule with the most work.
  Result<void> prepare(WorkBudget& slice);
  /// True when all tokens of `request.emitted` are accepted.
  bool has_accepted_emitted() const { return n_accepted_ == request_->emitted.size(); }
  /// True when a token can be drawn: its mask is known, or the text is over.
  bool is_ready() const;
  /// Units spent on the preparation in progress.
  std::size_t spent() const { return budget_.spent; }

  /// Why the text is over: it contains a stop string, or its grammar allows no more.
  std::optional<CompletionReason> over() const;

  /// The tokens that may come next; null: any. Valid until the next call. Precondition: ready.
  const TokenMask* allowed() const;

  /// Why this token ends the text, if it does. The token is then not part of the text.
  std::optional<CompletionReason> ends_before(TokenId token) const;

  /// Appends the token to the text. Precondition: ready, and the token is allowed. The grammar's
  /// states were computed with the mask, so `accept` does no work on the grammar.
  void accept(TokenId token);

  /// A copy of the state to which `return_to` restores the rules.
  class Mark;
  Mark mark() const;
  /// Undoes every `accept` since the mark. Precondition: no `prepare` since then.
  void return_to(Mark mark);

 private:
  using State = GrammarMatcher::State;
  static constexpr std::size_t kMaxMasks = 16;
  struct UnfinishedMask {
    PieceTrie::Walk<State> walk;
    TokenMask mask;
  };

  Result<void> work(WorkBudget& slice);
  bool start(WorkBudget& slice);
  Result<void> accept_emitted(WorkBudget& slice);
  bool follow(TokenId token, WorkBudget& slice);
  void make_mask(WorkBudget& slice);
  void make_space(WorkBudget& slice);
  void forbid_ends();
  bool is_too_short() const { return n_text_ < request_->sampling.min_tokens; }
  bool is_started() const { return state_ != GrammarMatcher::kUnfinished; }
  Result<void> check_work() const;

  const PromptRequest* request_;
  const Tokenizer* tokenizer_;
  const TokenMask* drawable_;
  std::size_t token_units_;
  WorkBudget budget_;
  std::optional<GeneratedText> text_;  ///< Used only with stop strings.
  std::optional<GrammarMatcher> matcher_;
  State state_ = GrammarMatcher::kUnfinished;
  std::size_t n_accepted_ = 0;  ///< Accepted tokens of `request.emitted`.
  std::size_t n_bytes_ = 0;     ///< Bytes of the next token already followed.
  std::optional<UnfinishedMask> unfinished_;
  std::map<State, TokenMask> masks_;
  const TokenMask* mask_ = nullptr;  ///< Mask of `state_`, once known.
  std::size_t n_text_ = 0;           ///< Tokens of the text.
  TokenMask continuing_;  ///< Drawable tokens that do not end a text; only with min_tokens.
};

class TokenRules::Mark {
  friend TokenRules;
  Mark(std::optional<GeneratedText> text, State state, const TokenMask* mask, std::size_t n_text)
      : text_(std::move(text)), state_(state), mask_(mask), n_text_(n_text) {}

  std::optional<GeneratedText> text_;
  State state_;
  const TokenMask* mask_;
  std::size_t n_text_;
};

}  // namespace leasehold
