/// Translates the body of `/v1/responses` into the body of an equivalent chat request. Pure.
///
/// `instructions` becomes a system message before the messages of `input`. Consecutive reasoning,
/// text and calls of an assistant become one message. The chat fields that choose or constrain
/// tokens, and `chat_template_kwargs`, are accepted, too. `reasoning.summary`, `text.verbosity`,
/// the `strict` of a tool, and all values of `include` except `message.output_text.logprobs` are
/// ignored.
///
/// Source: the reference of OpenAI's Responses API.
#pragma once

#include "worker/http/api/body_field.hpp"

namespace leasehold::http {

/// Errors: BadRequest naming the field, for fields that need stored responses (`store`,
/// `previous_response_id`, `conversation`, `prompt`, `background`), for `truncation`, for tools
/// that are not functions, and for items or parts that are neither text nor calls.
Read<OrderedJson> chat_of_response(const OrderedJson& body);

/// Replaces the chat paths in an error by those of a response, such as "text/format/schema".
ApiError refusal_of_response(ApiError refused);

/// The members of a response that repeat its request, as JSON.
std::string repeated_fields(const OrderedJson& body);

}  // namespace leasehold::http
