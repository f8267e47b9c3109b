/// Translates the body of `/v1/messages` into the body of an equivalent chat request. Pure.
///
/// A `max_tokens` above what the context and the tenant's quota hold is lowered. The chat fields
/// that choose or constrain tokens, and `chat_template_kwargs`, are accepted, too.
/// `thinking` sets the template variable `enable_thinking`, and `output_config.effort` sets
/// `reasoning_effort`; other templates ignore them. `budget_tokens` is checked, but does not end
/// the thoughts. A last message of the assistant is continued. Fields that change no text, such as
/// `cache_control`, `metadata` and `service_tier`, are ignored.
///
/// Source: the reference of Anthropic's Messages API.
#pragma once

#include "worker/http/api/body_field.hpp"

namespace leasehold::http {

/// Errors: BadRequest naming the field, for a missing `max_tokens`, for tools of Anthropic's
/// servers, for fields that need stored conversations, edited contexts or other servers, and the
/// errors of chat_messages_of.
Read<OrderedJson> chat_of_message(const OrderedJson& body);

/// True if the body asks for thoughts without their text. Precondition: chat_of_message accepts it.
bool omits_thinking(const OrderedJson& body);

/// Replaces the chat paths in an error by those of a message, such as "tools/0/input_schema".
ApiError refusal_of_message(ApiError refused);

}  // namespace leasehold::http
