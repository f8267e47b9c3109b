/// Reads the messages of a chat from a body. Pure.
///
/// Errors: BadRequest. `param` is the path of the wrong value, such as "messages/3/content/0/type".
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "ipc/control/messages_tenant.hpp"
#include "ipc/http/http_errors.hpp"
#include "worker/http/body_field.hpp"

namespace leasehold::http {

/// `messages` may be null: it is missing then. The role is one of OpenAI's. A content may be a text
/// or parts of text; that of an assistant or a tool may be missing or null. The old `function_call`
/// becomes a call of `tool_calls`.
std::expected<std::vector<wire::ChatMessage>, ApiError> read_chat_messages(
    const OrderedJson* messages);

/// A text, or the texts of parts of type text, input_text, output_text, reasoning_text,
/// summary_text or refusal, as one. `path` is that of `content`.
std::expected<std::string, ApiError> read_content_text(const OrderedJson& content,
                                                       const std::string& path);

/// The role of a message. `path` is that of the message.
std::expected<std::string, ApiError> read_role(const OrderedJson& message, const std::string& path);

}  // namespace leasehold::http
