/// Encodes the prompt of a request, which may be text, tokens or messages.
///
/// Lifetime: tokenizer and template outlive the encoder. Threads: any.
#pragma once

#include <optional>

#include "ipc/control/messages.hpp"
#include "worker/text/chat/chat_template.hpp"
#include "worker/text/tokenizer/tokenizer.hpp"

namespace leasehold {

/// The cause of the limit on a request's tokens.
enum class ContextBound : std::uint8_t { Model, SlidingWindow, Worker };

/// The noun for error messages: "… holds 512 tokens".
std::string_view name(ContextBound bound);

struct PromptEncoder {
  const Tokenizer* tokenizer = nullptr;
  /// The model's chat template, or the error that requests with messages get.
  const Result<ChatTemplate>* chat = nullptr;
  std::uint32_t max_context = 0;  ///< Tokens.
  ContextBound context_bound = ContextBound::Model;

  /// Refuses a text that cannot fit before tokenizing it. Text such as "<s>" from the client is
  /// encoded as three characters, always in messages, and in a plain prompt unless the request sets
  /// `parse_special`; from the template it is the control token. `now_unix_s` is used when the
  /// request has no time of its own. With `continue_final_message` the prompt ends with the content
  /// of the last message. The text of an embedding gets the end token that the tokenizer adds,
  /// unless it ends with it. Errors: BadRequest, also for an unknown role, or when the last message
  /// to continue has no content or the template does not print it; PromptTooLong; those of
  /// Tokenizer::encode and of ChatTemplate.
  Result<std::vector<TokenId>> encode(const wire::RequestSubmit& request,
                                      std::int64_t now_unix_s) const;
  /// Encodes a text that an operator publishes as a prefix of plain or templated prompts, so the
  /// name of a control token is encoded as that token. Errors: PromptTooLong, those of
  /// Tokenizer::encode.
  Result<std::vector<TokenId>> encode_published(const std::string& text) const;

 private:
  Result<std::vector<TokenId>> encode_text(const wire::RequestSubmit& request) const;
  Result<MarkedText> render_messages(const wire::RequestSubmit& request,
                                     std::int64_t now_unix_s) const;
  Result<void> check_length(const std::string& text) const;
  std::size_t max_prompt_bytes() const;
};

/// Checks when a model is loaded whether prompts can be encoded at all. Encodes a short text and a
/// short chat, as requests do. If the chat fails, returns the error of the template or of the chat;
/// plain prompts can still be served. Errors: UnsupportedModel when the tokenizer cannot encode the
/// text.
Result<std::optional<Error>> check_prompts(const Tokenizer& tokenizer,
                                           const Result<ChatTemplate>& chat);

}  // namespace leasehold
