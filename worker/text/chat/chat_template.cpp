#include "worker/text/chat/chat_template.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kernels/model/gguf/special_token_id.hpp"
#include "worker/text/chat/json_value.hpp"

namespace leasehold {
namespace {

using Json = nlohmann::ordered_json;
using jinja::Dict;
using jinja::List;
using jinja::None;
using jinja::Value;

constexpr std::string_view kTemplateKey = "tokenizer.chat_template";
constexpr std::string_view kTokensKey = "tokenizer.ggml.tokens";

constexpr std::string_view kRoles[] = {"system",    "developer", "user",
                                       "assistant", "tool",      "function"};

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

/// The name of a tool, and of other parts of a test conversation.
constexpr const char* kProbe = "leasehold_probe";

Value probing_tools(bool are_described = true) {
  const Json parameters{{"type", "object"}, {"properties", {{"x", {{"type", "string"}}}}}};
  Json function{{"name", kProbe}};
  if (are_described) function["description"] = "d";
  function["parameters"] = parameters;
  return value_from_json(Json::array({{{"type", "function"}, {"function", function}}})).value();
}

/// The number of times that the text has "None", which a template prints for a missing value.
std::size_t count_none(const MarkedText& text) {
  constexpr std::string_view kNone = "None";
  std::size_t count = 0;
  for (auto at = text.bytes().find(kNone); at != std::string::npos;
       at = text.bytes().find(kNone, at + kNone.size()))
    ++count;
  return count;
}

std::vector<ChatMessage> probing_messages(const CallStyle& style) {
  const Json arguments{{kProbe, kProbe}};
  const Json function{{"name", kProbe},
                      {"arguments", style.arguments_as_text ? Json(arguments.dump()) : arguments}};
  const Json call{{"id", "call00000"}, {"type", "function"}, {"function", function}};
  ChatMessage calls{.role = "assistant",
                    .content = {},
                    .more = {{"tool_calls", value_from_json(Json::array({call})).value()}}};
  if (style.empty_content_as_text) calls.content = "";
  return {{.role = "user", .content = "q"}, std::move(calls)};
}

}  // namespace

bool is_chat_role(std::string_view role) {
  return std::ranges::find(kRoles, role) != std::end(kRoles);
}

Value messages_value(std::span<const ChatMessage> messages) {
  List list{.items = {}, .depth = 2};
  for (const ChatMessage& message : messages) {
    const auto origin = is_chat_role(message.role) ? TextOrigin::Template : TextOrigin::Client;
    std::vector<Dict::Entry> entries;
    entries.emplace_back(Value::text("role"), Value::text(message.role, origin));
    entries.emplace_back(Value::text("content"),
                         message.content ? Value::text(*message.content) : Value(None{}));
    for (const auto& [key, value] : message.more) entries.emplace_back(Value::text(key), value);
    list.items.emplace_back(std::make_shared<const Dict>(std::move(entries)));
    list.depth = std::max(list.depth, list.items.back().depth() + 1);
  }
  return Value(std::make_shared<const List>(std::move(list)));
}

Result<ChatTemplate> ChatTemplate::parse(std::string_view source, SpecialTexts special) {
  ChatTemplate chat(TRY(jinja::Template::parse(source)), std::move(special));
  const ChatMessage system[] = {{.role = "system", .content = kProbe},
                                {.role = "user", .content = "q"}};
  chat.has_system_role_ = chat.prints_probe(system).value_or(false);
  chat.uses_tools_ = source.contains("tools") && chat.prints_tools();
  chat.needs_tool_descriptions_ = chat.uses_tools_ && chat.fails_without_description();
  chat.has_developer_role_ = source.contains("developer");
  chat.probe_calls();
  return chat;
}

Result<ChatTemplate> ChatTemplate::from_metadata(const GgufFile& file) {
  SpecialTexts special = TRY(read_special_texts(file));
  const auto source = TRY(file.get_or<std::string>(kTemplateKey, std::string(kChatMl)));
  return parse(source, std::move(special));
}

Result<ChatTemplate> ChatTemplate::replaced(const GgufFile& file, std::string_view source) {
  return parse(source, TRY(read_special_texts(file)));
}

Result<MarkedText> ChatTemplate::render(const ChatRequest& request,
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
    if (*text) variables.emplace_back(name, Value::text(**text, TextOrigin::Template));
  variables.insert(variables.end(), request.extra.begin(), request.extra.end());
  return template_.render(variables, request.now_unix_s, limits);
}

/// True if the template prints the probe that is in the messages or tools; nothing if it refuses
/// them.
std::optional<bool> ChatTemplate::prints_probe(std::span<const ChatMessage> messages,
                                               Value tools) const {
  const auto prompt = render({.messages = messages_value(messages), .tools = std::move(tools)});
  if (!prompt) return std::nullopt;
  return prompt->bytes().contains(kProbe);
}

/// A template that refuses the test conversation even without tools is expected to print them.
bool ChatTemplate::prints_tools() const {
  const ChatMessage user[] = {{.role = "user", .content = "q"}};
  return prints_probe(user, probing_tools()).value_or(!prints_probe(user));
}

bool ChatTemplate::fails_without_description() const {
  const ChatMessage user[] = {{.role = "user", .content = "q"}};
  return prints_probe(user, probing_tools()) && !prints_probe(user, probing_tools(false));
}

/// Renders a test conversation in each style. Chooses the first style that prints the call without
/// a further "None", or else the first that at least renders without one.
void ChatTemplate::probe_calls() {
  constexpr CallStyle kStyles[] = {{},
                                   {.arguments_as_text = true},
                                   {.empty_content_as_text = true},
                                   {.empty_content_as_text = true, .arguments_as_text = true}};
  const ChatMessage question[] = {{.role = "user", .content = "q"}};
  const auto rendered =
      render({.messages = messages_value(question), .add_generation_prompt = false});
  const std::size_t own_nones = rendered ? count_none(*rendered) : 0;
  std::optional<CallStyle> without_call;
  for (const CallStyle& style : kStyles) {
    const auto prompt = render(
        {.messages = messages_value(probing_messages(style)), .add_generation_prompt = false});
    if (!prompt || count_none(*prompt) > own_nones) continue;
    prints_calls_ = prompt->bytes().contains(kProbe);
    if (prints_calls_) return void(call_style_ = style);
    if (!without_call) without_call = style;
  }
  call_style_ = without_call.value_or(CallStyle{});
}

}  // namespace leasehold
