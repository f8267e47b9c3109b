/// Answers `/tokenize`, `/detokenize`, `/tokenizer_info` and `/v1/messages/count_tokens`. Pure. The
/// cost of a long text is that of the tokenizer.
///
/// Source: the bodies of vLLM's server, which clients use; the reference of Anthropic's API.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ipc/http/http_answer.hpp"
#include "worker/http/api/api_request.hpp"
#include "worker/text/tokenizer/tokenizer.hpp"

namespace leasehold::http {

/// Turns {"prompt": TEXT, "add_special_tokens": true, "parse_special": false, "return_token_strs":
/// false} into {"count", "max_model_len", "tokens", "token_strs"}, with the tokens of that
/// completion's prompt.
///
/// Turns {"messages": […], "add_generation_prompt": true, "tools": […], "chat_template_kwargs":
/// {…}, "return_token_strs": false} into the same, with the tokens of that chat's prompt.
/// `add_special_tokens` is ignored, because the template decides.
///
/// Answers 404 if `model` is none of the model's names, and 400 for a body with both or neither of
/// `prompt` and `messages`, for a `chat_template`, and for what Tokenizer::encode and EncodeChat
/// refuse.
Answer tokenize(std::string_view body, const Tokenizer& tokenizer, const ApiModel& model,
                const EncodeChat& encode_chat);

/// Turns {"tokens": [ID, …]} into {"prompt": TEXT}. Control tokens have no text, and the space that
/// the tokenizer adds before a text is removed. Answers 404 as `tokenize` does, and 400 for ids
/// outside the vocabulary.
Answer detokenize(std::string_view body, const Tokenizer& tokenizer, const ApiModel& model);

/// Turns the body of a message, where `max_tokens` may be missing, into {"input_tokens"}: the
/// number of tokens of its prompt.
Answer count_message_tokens(std::string_view body, const ApiModel& model,
                            const EncodeChat& encode_chat);

/// Answers {"tokenizer_class", "bos_token", "eos_token"}: the names of the control tokens, null for
/// one that the model lacks. lm-eval looks for this to use `/tokenize` instead of a tokenizer of
/// its own.
Answer tokenizer_info(const Tokenizer& tokenizer);

}  // namespace leasehold::http
