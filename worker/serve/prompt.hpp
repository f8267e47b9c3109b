/// Encodes a request's prompt, sent as text, as tokens or as messages.
///
/// Lifetime: tokenizer and template outlive it. Threads: any.
#pragma once

#include "ipc/control/messages.hpp"
#include "worker/text/chat/chat_template.hpp"
#include "worker/text/tokenizer/tokenizer.hpp"

namespace leasehold {

struct PromptEncoder {
  const Tokenizer* tokenizer = nullptr;
  /// The model's chat template, or the error that requests with messages get.
  const Result<ChatTemplate>* chat = nullptr;
  std::uint32_t max_context = 0;    ///< In tokens.
  bool has_sliding_window = false;  ///< See ModelConfig.

  /// The name of what holds `max_context` tokens, for error messages.
  std::string_view context_name() const;

  /// Refuses a text that cannot fit before tokenizing it. In a plain prompt "<s>" is three
  /// characters; in the output of the template it is the control token. `now_unix_s` is the time of
  /// messages without one. Errors: BadRequest, PromptTooLong, those of Tokenizer::encode and of
  /// ChatTemplate.
  Result<std::vector<TokenId>> encode(const wire::Generate& request, std::int64_t now_unix_s) const;

 private:
  Result<std::string> render_messages(const wire::Generate& request, std::int64_t now_unix_s) const;
  std::size_t max_prompt_bytes() const;
};

}  // namespace leasehold
