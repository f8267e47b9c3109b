/// The tokens of an answer that another host has sent: the field `emitted` of a body. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "worker/http/api/api_request.hpp"
#include "worker/text/sampling/generated_text.hpp"

namespace leasehold::http {

/// Reads `emitted` into the request, whose choices and length are known. Errors: BadRequest for
/// another value than a list of lists of token ids, for more lists than choices, and for a choice
/// with more tokens than the request allows. `n_vocab`: as in ApiModel.
Read<void> read_emitted(const Field& field, std::uint32_t n_vocab, ApiRequest& request);

/// The tokens of the choice; empty: it begins.
std::span<const std::int32_t> emitted_of(const ApiRequest& request, std::size_t choice);

/// True if the worker generates these tokens again, because what follows repeats log probabilities
/// of theirs. Otherwise it reads them like a prompt.
bool generates_again(const ApiRequest& request);

/// The messages in which a worker sent the tokens of one choice. Their log probabilities are 0.
///
/// Lifetime: the tokenizer outlives it.
class EmittedMessages {
 public:
  EmittedMessages(const wire::RequestSubmit& submit, const Tokenizer& tokenizer);

  wire::TokenEmitted next(std::int32_t token);

 private:
  const Tokenizer* tokenizer_;
  bool has_logprobs_;
  GeneratedText text_;
  std::uint32_t position_ = 0;
};

}  // namespace leasehold::http
