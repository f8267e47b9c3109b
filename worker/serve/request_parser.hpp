/// Parses a tenant's request: tokenizes its prompt and compiles its grammar.
///
/// Parsing a request takes up to a tenth of a second (worker/MEASUREMENTS.md), so the parser runs
/// on its own thread.
///
/// Threads: one at a time. Lifetime: the objects that `prompt` points to outlive the parser.
#pragma once

#include "ipc/control/lease_token.hpp"
#include "worker/schedule/request.hpp"
#include "worker/serve/parse_sampling.hpp"
#include "worker/serve/prompt.hpp"

namespace leasehold {

class RequestParser {
 public:
  explicit RequestParser(const PromptEncoder& prompt)
      : prompt_(prompt), constraints_(*prompt.tokenizer) {}

  /// Parses everything but the deadline, which counts from the arrival of the request.
  /// Errors: those of parse_sampling, PromptEncoder and ConstraintCompiler; BadRequest for emitted
  /// tokens outside the vocabulary; PromptTooLong.
  Result<PromptRequest> parse(const wire::RequestSubmit& wire_request, const LeaseClaim& claim);

 private:
  PromptEncoder prompt_;
  ConstraintCompiler constraints_;
};

/// The approximate size of an unparsed request in memory.
std::size_t size_bytes(const wire::RequestSubmit& wire_request);

}  // namespace leasehold
