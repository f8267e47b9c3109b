#include "worker/serve/prompt.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace leasehold {

std::size_t PromptEncoder::max_prompt_bytes() const {
  return std::size_t{max_context} * tokenizer->longest_piece_bytes();
}

std::string_view name(ContextBound bound) {
  switch (bound) {
    case ContextBound::Model:
      return "the model's context";
    case ContextBound::SlidingWindow:
      return "the model's sliding window, beyond which this worker does not compute,";
    case ContextBound::Worker:
      return "this worker's --max-context";
  }
  return "the context";
}

Result<std::vector<TokenId>> PromptEncoder::encode(const wire::RequestSubmit& request,
                                                   std::int64_t now_unix_s) const {
  if (request.prompt_tokens) return *request.prompt_tokens;
  if (request.messages) {
    const std::string text = TRY(render_messages(request, now_unix_s));
    return tokenizer->encode(text, SpecialTokens::AsTokens);
  }
  if (request.prompt->empty())
    return fail(Errc::BadRequest, "the prompt is empty; send text, tokens or messages");
  TRY(check_length(*request.prompt));
  return tokenizer->encode(*request.prompt);
}

Result<std::vector<TokenId>> PromptEncoder::encode_published(const std::string& text) const {
  TRY(check_length(text));
  return tokenizer->encode(text, SpecialTokens::AsTokens);
}

Result<void> PromptEncoder::check_length(const std::string& text) const {
  if (text.size() <= max_prompt_bytes()) return {};
  return fail(Errc::PromptTooLong,
              fmt::format("the prompt has {} bytes, and {} holds {} tokens; shorten it",
                          text.size(), name(context_bound), max_context));
}

/// Renders the messages with the model's chat template.
Result<std::string> PromptEncoder::render_messages(const wire::RequestSubmit& request,
                                                   std::int64_t now_unix_s) const {
  if (!*chat) return std::unexpected(chat->error());
  if (request.messages->empty())
    return fail(Errc::BadRequest, "messages is empty; send at least one");
  std::vector<ChatMessage> messages;
  for (const auto& [role, content] : *request.messages) messages.push_back({role, content});
  return (*chat)->render(
      {.messages = messages_value(messages),
       .now_unix_s = request.asked_at_unix_s.value_or(now_unix_s)},
      {.output_bytes = std::min(max_prompt_bytes(), jinja::Limits{}.output_bytes)});
}

}  // namespace leasehold
