/// Encodes a request's prompt, sent as text, as tokens or as messages.
///
/// Lifetime: tokenizer and template outlive it. Threads: any.
#pragma once

#include "ipc/control/messages.hpp"
#include "worker/text/chat/chat_template.hpp"
#include "worker/text/tokenizer/tokenizer.hpp"

namespace leasehold {

/// What limits the tokens of a request.
enum class ContextBound : std::uint8_t { Model, SlidingWindow, Worker };

/// The noun for error messages: "… holds 512 tokens".
std::string_view name(ContextBound bound);

struct PromptEncoder {
  const Tokenizer* tokenizer = nullptr;
  /// The model's chat template, or the error that requests with messages get.
  const Result<ChatTemplate>* chat = nullptr;
  std::uint32_t max_context = 0;  ///< In tokens.
  ContextBound context_bound = ContextBound::Model;

  /// Refuses a text that cannot fit before tokenizing it. "<s>" from the client is three
  /// characters, in messages always and in a plain prompt unless it sets `parse_special`; from the
  /// template it is the control token. `now_unix_s` is the time of messages without one. With
  /// `continue_final_message` the prompt ends with the content of the last message. Errors:
  /// BadRequest, also for an unknown role, or when the last message has no content or the template
  /// does not print it; PromptTooLong; those of Tokenizer::encode and of ChatTemplate.
  Result<std::vector<TokenId>> encode(const wire::RequestSubmit& request,
                                      std::int64_t now_unix_s) const;
  /// A text that an operator publishes, for plain prompts and those of the template: the name of a
  /// control token is that token. Errors: PromptTooLong, those of Tokenizer::encode.
  Result<std::vector<TokenId>> encode_published(const std::string& text) const;

 private:
  Result<MarkedText> render_messages(const wire::RequestSubmit& request,
                                     std::int64_t now_unix_s) const;
  Result<void> check_length(const std::string& text) const;
  std::size_t max_prompt_bytes() const;
};

}  // namespace leasehold
