#include "worker/serve/prompt.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace leasehold {

std::size_t PromptEncoder::most_bytes() const {
  return std::size_t{max_context} * tokenizer->longest_piece_bytes();
}

std::string_view PromptEncoder::what_holds_a_text() const {
  return has_sliding_window
             ? "the model's sliding window, beyond which this worker does not compute,"
             : "the model's context";
}

Result<std::vector<TokenId>> PromptEncoder::read(const wire::Generate& ask,
                                                 std::int64_t now_unix_s) const {
  if (ask.prompt_tokens) return *ask.prompt_tokens;
  if (ask.messages) {
    const std::string text = TRY(framed(ask, now_unix_s));
    return tokenizer->encode(text, SpecialTokens::AsTokens);
  }
  if (ask.prompt->empty()) return fail(Errc::BadRequest, "the prompt is empty");
  if (ask.prompt->size() <= most_bytes()) return tokenizer->encode(*ask.prompt);
  return fail(Errc::PromptTooLong, fmt::format("{} bytes, {} holds {} tokens", ask.prompt->size(),
                                               what_holds_a_text(), max_context));
}

/// The text the model's own template makes of the messages.
Result<std::string> PromptEncoder::framed(const wire::Generate& ask,
                                          std::int64_t now_unix_s) const {
  if (!*chat) return std::unexpected(chat->error());
  if (ask.messages->empty()) return fail(Errc::BadRequest, "there are no messages");
  std::vector<ChatMessage> messages;
  for (const auto& [role, content] : *ask.messages) messages.push_back({role, content});
  return (*chat)->render({.messages = messages_value(messages),
                          .now_unix_s = ask.asked_at_unix_s.value_or(now_unix_s)},
                         {.output_bytes = std::min(most_bytes(), jinja::Limits{}.output_bytes)});
}

}  // namespace leasehold
