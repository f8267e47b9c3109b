/// Writes tools, their calls and results into the texts of a chat's messages, for templates that
/// print none of them. Pure.
///
///   system     what the client sent, the tools, and the form of a call
///   assistant  <tool_call>{"name": N, "arguments": {…}}</tool_call> for each call, after its text
///   user       <tool_response>…</tool_response> for each result
///
/// This is the form of Hermes, which ToolCallParser reads (tool_calls.hpp).
#pragma once

#include <vector>

#include "worker/text/chat/chat_template.hpp"

namespace leasehold {

/// True if the template would leave out the tools, or what the messages say about calls.
bool needs_tools_as_text(const ChatTemplate& chat, std::span<const ChatMessage> messages,
                         const jinja::Value& tools);

/// Rewrites the messages. `tools` is None or a list in OpenAI's form. Without a system role in the
/// template, the first user's turn begins with the tools. Results are a user's turn, joined with a
/// neighbouring one, because some templates require that user and assistant take turns.
/// Precondition: there is a message. Errors: BadRequest for a call without a name; those of
/// jinja::Template::render.
Result<std::vector<ChatMessage>> tools_as_text(const ChatTemplate& chat,
                                               std::vector<ChatMessage> messages,
                                               const jinja::Value& tools,
                                               const jinja::Limits& limits = {});

}  // namespace leasehold
