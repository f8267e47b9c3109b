/// Translates the system prompt and the messages of Anthropic's API into the messages of a chat.
/// Pure.
///
/// Consecutive messages of one role become one. The texts of blocks are joined with a newline, and
/// those of an assistant without one, because they are pieces of a generated text. A `thinking`
/// block becomes the reasoning before an answer; a `redacted_thinking` block is left out. A
/// `tool_result` with `is_error` begins with "Error: ". Citations and `cache_control` are ignored.
#pragma once

#include "worker/http/api/body_field.hpp"

namespace leasehold::http {

/// Returns the messages as a JSON array. Errors: BadRequest naming the value, for other roles, for
/// blocks that are neither text, thoughts nor calls, for blocks in a message of the wrong role, and
/// for the result of a call that was not made.
Read<OrderedJson> chat_messages_of(const Field& system, const Field& messages);

}  // namespace leasehold::http
