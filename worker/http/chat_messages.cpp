#include "worker/http/chat_messages.hpp"

#include <fmt/format.h>

#include <utility>

namespace leasehold::http {
namespace {

/// What messages of assistants and tools have beside their content.
Result<void> read_calls(const OrderedJson& message, wire::ChatMessage& out) {
  const std::pair<const char*, std::string*> texts[] = {
      {"name", &out.name},
      {"tool_call_id", &out.tool_call_id},
      {"reasoning_content", &out.reasoning_content}};
  for (const auto& [key, text] : texts) {
    const OrderedJson* found = field_of(message, key);
    if (found == nullptr) continue;
    if (!found->is_string())
      return fail(Errc::BadRequest, fmt::format("{} of a message is a text", key));
    *text = found->get<std::string>();
  }
  const OrderedJson* calls = field_of(message, "tool_calls");
  if (calls == nullptr || (calls->is_array() && calls->empty())) return {};
  if (!calls->is_array()) return fail(Errc::BadRequest, "tool_calls of a message is an array");
  out.tool_calls = calls->dump();
  return {};
}

/// That of an assistant may be null: it may only call tools.
Result<std::optional<std::string>> read_content(const OrderedJson& message) {
  const OrderedJson* content = field_of(message, "content");
  if (content == nullptr && *field_of(message, "role") == "assistant") return std::nullopt;
  if (content != nullptr && content->is_string()) return content->get<std::string>();
  const auto wrong = [] {
    return fail(Errc::BadRequest,
                "the content of a message is a text, or an array of parts of type 'text'");
  };
  if (content == nullptr || !content->is_array()) return wrong();
  std::string joined;
  for (const OrderedJson& part : *content) {
    const OrderedJson* text = field_of(part, "text");
    const OrderedJson* type = field_of(part, "type");
    if (text == nullptr || !text->is_string() || type == nullptr || *type != "text") return wrong();
    joined += text->get_ref<const std::string&>();
  }
  return joined;
}

}  // namespace

Result<std::vector<wire::ChatMessage>> read_chat_messages(const OrderedJson* messages) {
  if (messages == nullptr || !messages->is_array() || messages->empty())
    return fail(Errc::BadRequest, "messages is an array of at least one message");
  std::vector<wire::ChatMessage> all;
  for (const OrderedJson& message : *messages) {
    const OrderedJson* role = field_of(message, "role");
    if (role == nullptr || !role->is_string())
      return fail(Errc::BadRequest, "each message is an object with the text 'role'");
    wire::ChatMessage& read = all.emplace_back();
    read.role = role->get<std::string>();
    TRY(read_calls(message, read));
    read.content = TRY(read_content(message));
  }
  return all;
}

}  // namespace leasehold::http
