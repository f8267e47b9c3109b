#include "worker/text/chat/chat_template.hpp"

#include <algorithm>

#include "worker/gguf/special_token_id.hpp"

namespace leasehold {
namespace {

using jinja::Dict;
using jinja::List;
using jinja::None;
using jinja::Value;

constexpr std::string_view kTemplateKey = "tokenizer.chat_template";
constexpr std::string_view kTokensKey = "tokenizer.ggml.tokens";

/// ChatML, which most models since 2023 understand.
constexpr std::string_view kChatMl =
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + (message['content'] or '') + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

/// The text of the token under `tokenizer.ggml.<name>_token_id`.
Result<std::optional<std::string>> special_text(const GgufFile& file,
                                                const std::vector<std::string>& tokens,
                                                std::string_view name) {
  const auto id = TRY(special_token_id(file, name, tokens.size()));
  return id ? std::optional(tokens[*id]) : std::nullopt;
}

Result<SpecialTexts> read_special_texts(const GgufFile& file) {
  if (!file.has(kTokensKey)) return SpecialTexts{};
  const auto tokens = TRY(file.get<std::vector<std::string>>(kTokensKey));
  SpecialTexts special;
  special.bos = TRY(special_text(file, tokens, "bos"));
  special.eos = TRY(special_text(file, tokens, "eos"));
  special.unknown = TRY(special_text(file, tokens, "unknown"));
  special.padding = TRY(special_text(file, tokens, "padding"));
  return special;
}

}  // namespace

Value messages_value(std::span<const ChatMessage> messages) {
  List list{.items = {}, .depth = 2};
  for (const ChatMessage& message : messages) {
    Dict dict;
    dict.entries.emplace_back(Value::text("role"), Value::text(message.role));
    dict.entries.emplace_back(Value::text("content"),
                              message.content ? Value::text(*message.content) : Value(None{}));
    for (const auto& [key, value] : message.more) {
      dict.entries.emplace_back(Value::text(key), value);
      dict.depth = std::max(dict.depth, value.depth() + 1);
    }
    list.depth = std::max(list.depth, dict.depth + 1);
    list.items.emplace_back(std::make_shared<const Dict>(std::move(dict)));
  }
  return Value(std::make_shared<const List>(std::move(list)));
}

Result<ChatTemplate> ChatTemplate::parse(std::string_view source, SpecialTexts special) {
  return ChatTemplate(TRY(jinja::Template::parse(source)), std::move(special),
                      source.contains("tools"));
}

Result<ChatTemplate> ChatTemplate::from_metadata(const GgufFile& file) {
  SpecialTexts special = TRY(read_special_texts(file));
  const auto source = TRY(file.get_or<std::string>(kTemplateKey, std::string(kChatMl)));
  return parse(source, std::move(special));
}

Result<std::string> ChatTemplate::render(const ChatRequest& request,
                                         const jinja::Limits& limits) const {
  jinja::Template::Variables variables = {
      {"messages", request.messages},
      {"tools", request.tools},
      {"documents", Value(None{})},
      {"add_generation_prompt", Value(request.add_generation_prompt)}};
  const std::pair<std::string_view, const std::optional<std::string>*> texts[] = {
      {"bos_token", &special_.bos},
      {"eos_token", &special_.eos},
      {"unk_token", &special_.unknown},
      {"pad_token", &special_.padding}};
  for (const auto& [name, text] : texts)
    if (*text) variables.emplace_back(name, Value::text(**text));
  variables.insert(variables.end(), request.extra.begin(), request.extra.end());
  return template_.render(variables, request.now_unix_s, limits);
}

}  // namespace leasehold
