/// Parses the sampling parameters and the grammar of a request.
#pragma once

#include "ipc/control/messages_tenant.hpp"
#include "worker/text/grammar/grammar_vocabulary.hpp"
#include "worker/text/sampling/params.hpp"

namespace leasehold {

/// Does not compile the grammar. Errors: BadRequest, which names the field, for a value out of
/// range, a token outside the vocabulary, two grammars, top_logprobs without logprobs, or
/// min_tokens beyond the longest text.
Result<SamplingParams> parse_sampling(const wire::RequestSubmit& request,
                                      const Tokenizer& tokenizer);

/// Compiles grammars over one vocabulary. Threads: one. Lifetime: the tokenizer outlives the
/// compiler.
class ConstraintCompiler {
 public:
  explicit ConstraintCompiler(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}

  /// Returns an empty constraint when there is no grammar. Errors: BadRequest with the position and
  /// the cause.
  Result<TextConstraint> compile(const GrammarSource& source);

 private:
  const Tokenizer* tokenizer_;
  std::shared_ptr<const GrammarVocabulary> vocabulary_;  ///< Built for the first grammar.
};

}  // namespace leasehold
