#include "worker/serve/prompt_check.hpp"

#include <array>

namespace leasehold {

Result<std::optional<Error>> check_prompts(const Tokenizer& tokenizer,
                                           const Result<ChatTemplate>& chat) {
  constexpr const char* kText = "Hi";
  if (const auto encoded = tokenizer.encode(kText); !encoded) {
    return fail(Errc::UnsupportedModel,
                "the tokenizer cannot encode a short text: " + encoded.error().detail);
  }
  if (!chat) return chat.error();
  const std::array<ChatMessage, 1> messages{{{.role = "user", .content = kText}}};
  const auto rendered = chat->render({.messages = messages_value(messages)});
  if (!rendered) return rendered.error();
  const auto encoded = tokenizer.encode(*rendered);
  if (!encoded) return encoded.error();
  if (encoded->empty())
    return Error{Errc::UnsupportedModel, "the chat template makes an empty prompt of a message"};
  return std::nullopt;
}

}  // namespace leasehold
