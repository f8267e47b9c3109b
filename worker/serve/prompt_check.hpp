/// Finds when a model is loaded what would fail every request.
#pragma once

#include <optional>

#include "worker/text/chat/chat_template.hpp"
#include "worker/text/tokenizer/tokenizer.hpp"

namespace leasehold {

/// Encodes a short text and a short chat, as requests do. Returns why chats are refused, if they
/// are: the error of the template, or that of the short chat. Plain prompts are still served.
/// Errors: UnsupportedModel when the tokenizer cannot encode the text.
Result<std::optional<Error>> check_prompts(const Tokenizer& tokenizer,
                                           const Result<ChatTemplate>& chat);

}  // namespace leasehold
