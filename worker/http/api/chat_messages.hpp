/// Reads the messages of a chat from a body. Pure.
///
/// Errors: BadRequest. `param` is the path of the wrong value, such as "messages/3/content/0/type".
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "ipc/control/messages/tenant.hpp"
#include "ipc/http/http_errors.hpp"
#include "worker/http/api/body_field.hpp"

namespace leasehold::http {

/// A null `messages` means that the field is missing. Each role is one of OpenAI's. A content is a
/// text or an array of text parts; the content of an assistant or a tool may be missing or null.
/// The old field `function_call` becomes an entry of `tool_calls`.
std::expected<std::vector<wire::ChatMessage>, ApiError> read_chat_messages(
    const OrderedJson* messages);

/// Returns `content` if it is a text, and otherwise the joined texts of its parts, which have the
/// type text, input_text, output_text, reasoning_text, summary_text or refusal. `path` is the path
/// of `content`.
std::expected<std::string, ApiError> read_content_text(const OrderedJson& content,
                                                       const std::string& path);

/// The role of a message. `path` is the path of the message.
std::expected<std::string, ApiError> read_role(const OrderedJson& message, const std::string& path);

}  // namespace leasehold::http
