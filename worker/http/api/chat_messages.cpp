#include "worker/http/api/chat_messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/utf8.hpp"
#include "worker/text/chat/chat_template.hpp"

namespace leasehold::http {
namespace {

constexpr std::string_view kTextParts[] = {"text",           "input_text",   "output_text",
                                           "reasoning_text", "summary_text", "refusal"};

Read<std::string> read_part(const Field& part) {
  if (!part.is_object())
    return part.refuse(R"(a part of a content is an object; send {"type": "text", "text": …})");
  const Field type = part["type"];
  const bool is_known = type && std::ranges::any_of(kTextParts, [&type](const auto& each) {
                          return type.json() == each;
                        });
  if (!is_known) {
    return type.refuse(fmt::format("a part of type {} is not supported; send parts of type 'text'",
                                   type ? printable_excerpt(type.json().dump()) : "null"));
  }
  const char* key = type.json() == "refusal" ? "refusal" : "text";
  const Field text = part[key];
  if (!text.is_text()) return text.refuse(fmt::format("{} of a part is a text", key));
  return text.text();
}

/// A missing content is nothing for an assistant, which may only call tools, and an empty text for
/// a tool.
Read<std::optional<std::string>> read_content(const Field& message, const std::string& role) {
  const Field content = message["content"];
  if (content) return TRY(read_content_text(content));
  const Field refusal = message["refusal"];
  if (role == "assistant" && refusal.is_text()) return refusal.text();
  if (role == "assistant") return std::nullopt;
  if (role == "tool" || role == "function") return "";
  return content.refuse("the content of a message is missing; send a text");
}

Read<void> check_function(const Field& function) {
  if (!function.is_object()) return function.refuse("the function of a call is an object");
  const Field name = function["name"];
  if (!name.is_text()) return name.refuse("the name of a function that is called is a text");
  const Field arguments = function["arguments"];
  if (!arguments || arguments.is_text() || arguments.is_object()) return {};
  return arguments.refuse("the arguments of a call are a JSON object, or the text of one");
}

/// The calls as JSON, or an empty text if there are none.
Read<std::string> read_calls(const Field& message) {
  const Field calls = message["tool_calls"];
  if (!calls || (calls.json().is_array() && calls.json().empty())) {
    const Field function = message["function_call"];
    if (!function) return "";
    TRY(check_function(function));
    const OrderedJson call{{"type", "function"}, {"function", function.json()}};
    return OrderedJson::array({call}).dump();
  }
  if (!calls.json().is_array()) return calls.refuse("tool_calls of a message is an array");
  for (std::size_t i = 0; i < calls.json().size(); ++i) {
    const Field call = calls.at(i);
    if (!call.is_object()) return call.refuse("a call of a tool is an object");
    if (const Field function = call["function"]) TRY(check_function(function));
  }
  return calls.json().dump();
}

/// Reads the fields that messages of assistants and tools have besides their content.
Read<void> read_texts(const Field& message, wire::ChatMessage& out) {
  const std::pair<const char*, std::string*> texts[] = {
      {"name", &out.name},
      {"tool_call_id", &out.tool_call_id},
      {"reasoning_content", &out.reasoning_content}};
  for (const auto& [key, text] : texts) {
    const Field found = message[key];
    if (!found) continue;
    if (!found.is_text()) return found.refuse(fmt::format("{} of a message is a text", key));
    *text = found.text();
  }
  return {};
}

}  // namespace

Read<std::string> read_content_text(const Field& content) {
  if (content.is_text()) return content.text();
  if (!content.json().is_array())
    return content.refuse(
        "the content of a message is a text, or an array of parts of type 'text'");
  std::string joined;
  for (std::size_t i = 0; i < content.json().size(); ++i) joined += TRY(read_part(content.at(i)));
  return joined;
}

Read<std::string> read_role(const Field& message) {
  if (!message.is_object()) return message.refuse("a message is an object with the text 'role'");
  const Field role = message["role"];
  if (!role.is_text()) return role.refuse("each message is an object with the text 'role'");
  const auto& text = role.json().get_ref<const std::string&>();
  if (is_chat_role(text)) return text;
  return role.refuse(
      fmt::format("unknown role '{}'; send system, developer, user, assistant or tool",
                  printable_excerpt(text)));
}

Read<std::vector<wire::ChatMessage>> read_chat_messages(const Field& messages) {
  if (!messages.is_array() || messages.json().empty())
    return messages.refuse("messages is an array of at least one message");
  std::vector<wire::ChatMessage> all;
  for (std::size_t i = 0; i < messages.json().size(); ++i) {
    const Field message = messages.at(i);
    wire::ChatMessage& read = all.emplace_back();
    read.role = TRY(read_role(message));
    read.content = TRY(read_content(message, read.role));
    read.tool_calls = TRY(read_calls(message));
    TRY(read_texts(message, read));
  }
  return all;
}

}  // namespace leasehold::http
