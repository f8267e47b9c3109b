/// What decides, beside the logits, how one request's text may go on and where it ends: its
/// grammar, its stop strings and tokens, the model's end tokens.
///
/// The state is a function of the request and its emitted tokens, so a rebind builds it anew.
///
/// Lifetime: request and tokenizer outlive it. Threads: one. Memory: some 3 MB at most for a
/// grammar that is used to the full, usually some 100 kB; next to nothing without one.
#pragma once

#include <map>
#include <optional>

#include "worker/engine/generated_text.hpp"
#include "worker/schedule/request.hpp"
#include "worker/text/grammar/grammar_matcher.hpp"
#include "worker/text/sampling/token_mask.hpp"

namespace leasehold {

class TokenRules {
 public:
  /// Follows `request.emitted`. Errors: BadRequest when these are no beginning of a text of the
  /// request's grammar.
  static Result<TokenRules> create(const PromptRequest& request, const Tokenizer& tokenizer);

  /// The text is over: a stop string stands in it, or the grammar has nothing more to say.
  std::optional<CompletionReason> over() const;

  /// The tokens that may come next; null: any. Valid until the next call.
  /// Errors: BadRequest when the grammar has too many readings of this text.
  Result<const TokenMask*> allowed();

  /// Why the text ends where this token comes, which is then no part of it.
  std::optional<CompletionReason> ends_before(TokenId token) const;

  /// The token is part of the text. Precondition: it is allowed.
  void accept(TokenId token);

 private:
  static constexpr std::size_t kMaxMasks = 16;

  TokenRules(const PromptRequest& request, const Tokenizer& tokenizer);
  TokenMask make_mask();

  const PromptRequest* request_;
  const Tokenizer* tokenizer_;
  std::optional<GeneratedText> text_;  ///< When there are stop strings.
  std::optional<GrammarMatcher> matcher_;
  GrammarMatcher::State state_ = GrammarMatcher::kDead;
  std::map<GrammarMatcher::State, TokenMask> masks_;
};

}  // namespace leasehold
