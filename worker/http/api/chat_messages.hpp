/// Reads the messages of a chat from a body. Pure.
///
/// Errors: BadRequest. `param` is the path of the wrong value, such as "messages/3/content/0/type".
#pragma once

#include <string>
#include <vector>

#include "ipc/control/messages/tenant.hpp"
#include "worker/http/api/body_field.hpp"

namespace leasehold::http {

/// Each role is one of OpenAI's. A content is a text or an array of text parts; the content of an
/// assistant or a tool may be missing or null. The old field `function_call` becomes an entry of
/// `tool_calls`.
Read<std::vector<wire::ChatMessage>> read_chat_messages(const Field& messages);

/// Returns `content` if it is a text, and otherwise the joined texts of its parts, which have the
/// type text, input_text, output_text, reasoning_text, summary_text or refusal. Precondition:
/// `content` is sent.
Read<std::string> read_content_text(const Field& content);

/// The role of a message.
Read<std::string> read_role(const Field& message);

}  // namespace leasehold::http
