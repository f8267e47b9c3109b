/// Reads the bodies of `/tokenize` and `/detokenize`, and answers them. Pure; the work of a long
/// text is that of the tokenizer.
///
/// Source: the shapes of vLLM's server, which clients use.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ipc/http/http_answer.hpp"
#include "worker/http/api_request.hpp"
#include "worker/text/tokenizer/tokenizer.hpp"

namespace leasehold::http {

/// {"prompt": TEXT, "add_special_tokens": true, "parse_special": false, "return_token_strs": false}
/// to {"count", "max_model_len", "tokens", "token_strs"}: the prompt of that completion.
///
/// {"messages": […], "add_generation_prompt": true, "tools": […], "chat_template_kwargs": {…},
/// "return_token_strs": false} to the same: the prompt of that chat. `add_special_tokens` is
/// ignored, because the template decides.
///
/// Answers 400 for both or none of them, for another template, and for what Tokenizer::encode and
/// EncodeChat refuse.
Answer tokenize(std::string_view body, const Tokenizer& tokenizer, const ApiModel& model,
                const EncodeChat& encode_chat);

/// {"tokens": [ID, …]} to {"prompt": TEXT}. Control tokens have no text, and the space that the
/// tokenizer adds before a text is removed. Answers 400 for ids outside
/// the vocabulary.
Answer detokenize(std::string_view body, const Tokenizer& tokenizer);

}  // namespace leasehold::http
