/// From what a tenant sent to what the engine works with.
#pragma once

#include "ipc/control/messages_tenant.hpp"
#include "worker/text/grammar/grammar_vocabulary.hpp"
#include "worker/text/sampling/params.hpp"

namespace leasehold {

/// Errors: BadRequest naming the field: out of range, a token that is not of the vocabulary, two
/// grammars at once, top_logprobs without logprobs. The grammar's text is not read yet.
Result<SamplingParams> parse_sampling(const wire::Generate& request, const Tokenizer& tokenizer);

/// Grammars of requests, over one vocabulary. Threads: one. Lifetime: the tokenizer outlives it.
class ConstraintCompiler {
 public:
  explicit ConstraintCompiler(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}

  /// Empty when there is no grammar. Errors: BadRequest saying where in its text and what.
  Result<TextConstraint> compile(const GrammarSource& source);

 private:
  const Tokenizer* tokenizer_;
  std::shared_ptr<const GrammarVocabulary> vocabulary_;  ///< Made for the first who needs it.
};

}  // namespace leasehold
