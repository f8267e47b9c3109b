/// Reads the body of `/v1/responses` as the body of a chat that asks for the same. Pure.
///
/// `instructions` becomes a system message before those of `input`, whose role `developer` is
/// `system`. An assistant's thoughts, text and calls that follow each other become one message.
/// The fields of a chat that choose or constrain tokens and `chat_template_kwargs` are read, too.
/// Ignored are `reasoning.summary`, `text.verbosity`, `strict` of a tool, and `include` but for
/// `message.output_text.logprobs`.
///
/// Source: the reference of OpenAI's Responses API.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "ipc/http/http_errors.hpp"

namespace leasehold::http {

/// Errors: BadRequest with the field, for what needs stored responses (`store`,
/// `previous_response_id`, `conversation`, `prompt`, `background`), for `truncation`, tools that
/// are not functions, and items or parts that are not text or calls.
std::expected<nlohmann::ordered_json, ApiError> chat_of_response(
    const nlohmann::ordered_json& body);

/// The refusal of a chat with the paths of a response: "text/format/schema".
ApiError refusal_of_response(ApiError refused);

/// JSON: the members of a response that repeat its request.
std::string repeated_fields(const nlohmann::ordered_json& body);

}  // namespace leasehold::http
