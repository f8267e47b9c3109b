// Chat templates from model files with messages from requests. Input: the template, a zero byte,
// then the messages as JSON; default messages if there are none.
#include <nlohmann/json.hpp>

#include "tests/fuzz/input.hpp"
#include "worker/text/chat/chat_template.hpp"
#include "worker/text/chat/json_value.hpp"

using namespace leasehold;

namespace {

constexpr jinja::Limits kLimits{.output_bytes = 1 << 16, .steps = 50'000};

bool is_typed(const Error& error) {
  return error.code == Errc::UnsupportedModel || error.code == Errc::BadRequest ||
         error.code == Errc::PromptTooLong;
}

jinja::Value messages_in(std::string_view json) {
  const auto parsed = nlohmann::ordered_json::parse(json, nullptr, false);
  if (!parsed.is_discarded()) {
    if (auto value = value_from_json(parsed)) return *value;
  }
  const ChatMessage messages[] = {
      {"system", "Be brief."}, {"user", "Hi é"}, {"assistant", "'Yes'"}};
  return messages_value(messages);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(input.find('\0'), input.size());
  const auto chat = ChatTemplate::parse(input.substr(0, end), {.bos = "<s>", .eos = "</s>"});
  fuzz::check(chat || is_typed(chat.error()));
  if (!chat) return 0;
  const ChatRequest request{.messages = messages_in(input.substr(std::min(end + 1, size)))};
  const auto text = chat->render(request, kLimits);
  fuzz::check(text ? text->size() <= kLimits.output_bytes : is_typed(text.error()));
  return 0;
}
