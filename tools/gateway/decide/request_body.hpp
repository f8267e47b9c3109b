/// Reads what the gateway needs of a request's body, and adds the tokens that a host must know.
/// Pure. The body is not trusted; everything else in it is the host's to check.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tools/gateway/decide/host_stream.hpp"

namespace leasehold::gateway {

/// A worker's maximum (worker/http/api/api_request.hpp).
inline constexpr std::uint32_t kMaxChoices = 16;

struct BodyFacts {
  std::string model;   ///< Empty: the body names none.
  std::string prompt;  ///< The first bytes of the prompt as JSON, at most kPlacedPromptBytes.
  AnswerForm form = AnswerForm::Document;
  /// `n` for each prompt, within 1 and kMaxChoices. A body with other values is refused by the
  /// host.
  std::uint32_t choices = 1;
  /// The client can come back with Last-Event-ID: `"resumable": true`.
  bool resumable = false;
  /// The client accepts that another arithmetic continues the text: `"any_arithmetic": true`.
  bool any_arithmetic = false;
};

/// Errors: BadRequest for a body that is not a JSON object, for one with the member "emitted",
/// which only a gateway may send, and for an "any_arithmetic" that is neither true nor false.
Result<BodyFacts> read_body(std::string_view body);

/// Returns the body with the member "emitted" in front; its other bytes are unchanged. Lists at the
/// end that are empty are left out; without any tokens the body is returned as it is. read_body has
/// accepted the body.
std::string with_emitted(std::string_view body, const EmittedTokens& emitted);

}  // namespace leasehold::gateway
