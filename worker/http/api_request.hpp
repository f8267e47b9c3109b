/// Reads the bodies of `/v1/completions` and `/v1/chat/completions`. Pure.
#pragma once

#include <string>
#include <string_view>

#include "ipc/control/messages_tenant.hpp"
#include "worker/http/http_errors.hpp"

namespace leasehold::http {

enum class Api : std::uint8_t { Completions, Chat };

struct ApiRequest {
  Api api = Api::Completions;
  wire::RequestSubmit submit;  ///< Without token; the request id and the seed are new unless sent.
  bool stream = false;
  bool include_usage = false;     ///< A chunk with the usage before [DONE].
  bool continuous_usage = false;  ///< The usage so far in every chunk.
};

struct ApiModel {
  std::string name;
  std::uint32_t max_context = 0;
};

/// Unknown fields are ignored; a known field whose promise cannot be kept is refused with its name:
/// `n` other than 1, tools, logprobs, echo, best_of, suffix, several prompts, parts of a message
/// that are not text. Errors: BadRequest; UnknownRequest for another model than `model`.
std::expected<ApiRequest, ApiError> parse_api_request(Api api, std::string_view body,
                                                      const ApiModel& model);

}  // namespace leasehold::http
