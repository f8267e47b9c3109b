#include "worker/text/chat/tools_as_text.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace leasehold {
namespace {

using jinja::Template;
using jinja::Value;

constexpr std::string_view kCallsKey = "tool_calls";

constexpr std::string_view kTools =
    "You can call these functions:\n"
    "{% for tool in value %}{{ (tool.function or tool) | tojson }}\n{% endfor %}"
    "To call one, write\n"
    "<tool_call>\n"
    "{\"name\": \"FUNCTION\", \"arguments\": {\"PARAMETER\": VALUE}}\n"
    "</tool_call>\n"
    "and you get its <tool_response>. If no call is needed, answer in plain text.";

/// Arguments that are a text are JSON already.
constexpr std::string_view kCalls =
    "{% for call in value %}{% set called = call.function or call %}"
    "{% if called.name is not string %}"
    "{{ raise_exception('a call in tool_calls has no function.name; send one') }}{% endif %}"
    "{{ '\n' if not loop.first }}<tool_call>\n"
    "{\"name\": {{ called.name | tojson }}, \"arguments\": "
    "{{ called.arguments if called.arguments is string else (called.arguments or {}) | tojson }}}\n"
    "</tool_call>{% endfor %}";

Result<std::string> written(std::string_view source, const Value& value,
                            const jinja::Limits& limits) {
  const Template parsed = TRY(Template::parse(source));
  MarkedText text = TRY(parsed.render({{"value", value}}, 0, limits));
  return std::move(text).take_bytes();
}

bool is_result(const ChatMessage& message) {
  return message.role == "tool";
}

auto calls_of(auto& message) {
  return std::ranges::find(message.more, kCallsKey, [](const auto& each) { return each.first; });
}

bool has_calls(const ChatMessage& message) {
  return calls_of(message) != message.more.end();
}

void add_text(ChatMessage& message, std::string_view separator, std::string_view text) {
  std::string& content = message.content ? *message.content : message.content.emplace();
  if (!content.empty()) content += separator;
  content += text;
}

/// Moves the calls of an assistant's message to the end of its text.
Result<void> write_calls(ChatMessage& message, const jinja::Limits& limits) {
  const auto calls = calls_of(message);
  if (calls == message.more.end()) return {};
  add_text(message, "\n", TRY(written(kCalls, calls->second, limits)));
  message.more.erase(calls);
  return {};
}

ChatMessage user_turn_of(const ChatMessage& result) {
  return {.role = "user",
          .content = "<tool_response>\n" + result.content.value_or("") + "\n</tool_response>"};
}

/// Writes the description of the tools where the model reads it first.
void add_tools(std::vector<ChatMessage>& messages, std::string text, bool has_system_role) {
  ChatMessage& first = messages.front();
  if (first.role == "system" || first.role == "developer") return add_text(first, "\n\n", text);
  if (!has_system_role && first.role == "user") {
    ChatMessage turn{.role = "user", .content = std::move(text)};
    add_text(turn, "\n\n", first.content.value_or(""));
    first.content = std::move(turn.content);
    return;
  }
  messages.insert(messages.begin(),
                  {.role = has_system_role ? "system" : "user", .content = std::move(text)});
}

}  // namespace

bool needs_tools_as_text(const ChatTemplate& chat, std::span<const ChatMessage> messages,
                         const Value& tools) {
  if (chat.uses_tools()) return false;
  if (!tools.is_none()) return true;
  return !chat.prints_calls() && std::ranges::any_of(messages, [](const ChatMessage& message) {
    return is_result(message) || has_calls(message);
  });
}

Result<std::vector<ChatMessage>> tools_as_text(const ChatTemplate& chat,
                                               std::vector<ChatMessage> messages,
                                               const Value& tools, const jinja::Limits& limits) {
  std::vector<ChatMessage> turns;
  bool follows_result = false;
  for (ChatMessage& message : messages) {
    const bool is_of_tool = is_result(message);
    if (is_of_tool) message = user_turn_of(message);
    TRY(write_calls(message, limits));
    const bool is_second = !turns.empty() && turns.back().role == "user" && message.role == "user";
    if (is_second && (is_of_tool || follows_result)) {
      add_text(turns.back(), "\n", message.content.value_or(""));
    } else {
      turns.push_back(std::move(message));
    }
    follows_result = is_of_tool;
  }
  if (!tools.is_none())
    add_tools(turns, TRY(written(kTools, tools, limits)), chat.has_system_role());
  return turns;
}

}  // namespace leasehold
