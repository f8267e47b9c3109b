/// A request's prompt, whichever way it came, as tokens.
///
/// Lifetime: tokenizer and template outlive it. Threads: any number may read.
#pragma once

#include "ipc/control/messages.hpp"
#include "worker/text/chat/chat_template.hpp"
#include "worker/text/tokenizer/tokenizer.hpp"

namespace leasehold {

struct PromptEncoder {
  const Tokenizer* tokenizer = nullptr;
  /// The model's, or why there is none: requests with messages are told.
  const Result<ChatTemplate>* chat = nullptr;
  std::uint32_t max_context = 0;    ///< In tokens.
  bool has_sliding_window = false;  ///< See ModelConfig.

  /// For messages: what it is that holds `max_context` tokens.
  std::string_view context_name() const;

  /// A text that cannot fit is refused before it is cut into tokens. In a plain prompt "<s>" is
  /// three characters; in what the template writes it is the control token. `now_unix_s`: for
  /// messages that do not say when they were asked. Errors: BadRequest, PromptTooLong, those of
  /// Tokenizer::encode and of ChatTemplate.
  Result<std::vector<TokenId>> encode(const wire::Generate& request, std::int64_t now_unix_s) const;

 private:
  Result<std::string> render_messages(const wire::Generate& request, std::int64_t now_unix_s) const;
  std::size_t max_prompt_bytes() const;
};

}  // namespace leasehold
