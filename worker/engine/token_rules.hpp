/// The rules, apart from the logits, for how one request's text continues and where it ends: its
/// grammar, its stop strings and stop tokens, and the model's end tokens.
///
/// The state depends only on the request and its emitted tokens, so a rebind rebuilds it.
///
/// Lifetime: request and tokenizer outlive it. Threads: one. Memory: usually about 100 kB with a
/// grammar, at most about 3 MB; almost none without one.
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
  /// Accepts the tokens of `request.emitted`. Errors: BadRequest when no text of the request's
  /// grammar begins with them.
  static Result<TokenRules> create(const PromptRequest& request, const Tokenizer& tokenizer);

  /// Why the text is over: it contains a stop string, or its grammar allows no more.
  std::optional<CompletionReason> over() const;

  /// The tokens that may come next; null: any. Valid until the next call.
  /// Errors: BadRequest when the grammar has too many parses of this text.
  Result<const TokenMask*> allowed();

  /// Why this token ends the text, if it does. The token is then not part of the text.
  std::optional<CompletionReason> ends_before(TokenId token) const;

  /// Appends the token to the text. Precondition: it is allowed.
  void accept(TokenId token);

 private:
  static constexpr std::size_t kMaxMasks = 16;

  TokenRules(const PromptRequest& request, const Tokenizer& tokenizer);
  TokenMask make_mask();

  const PromptRequest* request_;
  const Tokenizer* tokenizer_;
  std::optional<GeneratedText> text_;  ///< Only with stop strings.
  std::optional<GrammarMatcher> matcher_;
  GrammarMatcher::State state_ = GrammarMatcher::kDead;
  std::map<GrammarMatcher::State, TokenMask> masks_;
};

}  // namespace leasehold
