/// A tenant's request made into what the engine works with: its prompt cut into tokens, its grammar
/// compiled. That takes a tenth of a second at worst (worker/serve's prices are in
/// tests/unit/worker/serve/request_speed_test.cpp), so it is no work for a thread that others wait
/// for.
///
/// Threads: one at a time. Lifetime: what `prompt` points to outlives it.
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

  /// All but the deadline, which counts from when the request came.
  /// Errors: those of parse_sampling, PromptEncoder and ConstraintCompiler; BadRequest for emitted
  /// tokens that are none; PromptTooLong.
  Result<PromptRequest> parse(const wire::Generate& wire_request, const LeaseClaim& claim);

 private:
  PromptEncoder prompt_;
  ConstraintCompiler constraints_;
};

/// What a request holds of memory until it is read, about.
std::size_t size_bytes(const wire::Generate& wire_request);

}  // namespace leasehold
