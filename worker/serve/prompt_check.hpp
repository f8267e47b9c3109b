/// Checks when a model is loaded whether prompts can be encoded at all.
#pragma once

#include <optional>

#include "worker/text/chat/chat_template.hpp"
#include "worker/text/tokenizer/tokenizer.hpp"

namespace leasehold {

/// Encodes a short text and a short chat, as requests do. If the chat fails, returns the error of
/// the template or of the chat; plain prompts can still be served. Errors: UnsupportedModel when
/// the tokenizer cannot encode the text.
Result<std::optional<Error>> check_prompts(const Tokenizer& tokenizer,
                                           const Result<ChatTemplate>& chat);

}  // namespace leasehold
