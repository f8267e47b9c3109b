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

std::unexpected<ApiError> wrong(std::string path, std::string detail) {
  return std::unexpected(ApiError{{Errc::BadRequest, std::move(detail)}, std::move(path)});
}

std::expected<std::string, ApiError> read_part(const OrderedJson& part, const std::string& path) {
  if (!part.is_object())
    return wrong(path, R"(a part of a content is an object; send {"type": "text", "text": …})");
  const OrderedJson* type = field_of(part, "type");
  const bool is_text = type != nullptr && std::ranges::any_of(kTextParts, [type](const auto& each) {
                         return *type == each;
                       });
  if (!is_text) {
    return wrong(path + "/type",
                 fmt::format("a part of type {} is not supported; send parts of type 'text'",
                             type != nullptr ? printable_excerpt(type->dump()) : "null"));
  }
  const char* key = *type == "refusal" ? "refusal" : "text";
  const OrderedJson* text = field_of(part, key);
  if (text == nullptr || !text->is_string())
    return wrong(fmt::format("{}/{}", path, key), fmt::format("{} of a part is a text", key));
  return text->get<std::string>();
}

using Content = std::expected<std::optional<std::string>, ApiError>;

/// A missing content is nothing for an assistant, which may only call tools, and an empty text for
/// a tool.
Content read_content(const OrderedJson& message, const std::string& role, const std::string& path) {
  if (const OrderedJson* content = field_of(message, "content"))
    return TRY(read_content_text(*content, path + "/content"));
  const OrderedJson* refusal = field_of(message, "refusal");
  if (role == "assistant" && refusal != nullptr && refusal->is_string())
    return refusal->get<std::string>();
  if (role == "assistant") return std::nullopt;
  if (role == "tool" || role == "function") return "";
  return wrong(path + "/content", "the content of a message is missing; send a text");
}

std::expected<void, ApiError> check_function(const OrderedJson& function, const std::string& path) {
  if (!function.is_object()) return wrong(path, "the function of a call is an object");
  const OrderedJson* name = field_of(function, "name");
  if (name == nullptr || !name->is_string())
    return wrong(path + "/name", "the name of a function that is called is a text");
  const OrderedJson* arguments = field_of(function, "arguments");
  if (arguments == nullptr || arguments->is_string() || arguments->is_object()) return {};
  return wrong(path + "/arguments",
               "the arguments of a call are a JSON object, or the text of one");
}

/// The calls as JSON, or an empty text if there are none.
std::expected<std::string, ApiError> read_calls(const OrderedJson& message,
                                                const std::string& path) {
  const OrderedJson* calls = field_of(message, "tool_calls");
  if (calls == nullptr || (calls->is_array() && calls->empty())) {
    const OrderedJson* function = field_of(message, "function_call");
    if (function == nullptr) return "";
    TRY(check_function(*function, path + "/function_call"));
    const OrderedJson call{{"type", "function"}, {"function", *function}};
    return OrderedJson::array({call}).dump();
  }
  if (!calls->is_array()) return wrong(path + "/tool_calls", "tool_calls of a message is an array");
  for (std::size_t i = 0; i < calls->size(); ++i) {
    const std::string call_path = fmt::format("{}/tool_calls/{}", path, i);
    const OrderedJson& call = (*calls)[i];
    if (!call.is_object()) return wrong(call_path, "a call of a tool is an object");
    if (const OrderedJson* function = field_of(call, "function"))
      TRY(check_function(*function, call_path + "/function"));
  }
  return calls->dump();
}

/// Reads the fields that messages of assistants and tools have besides their content.
std::expected<void, ApiError> read_texts(const OrderedJson& message, const std::string& path,
                                         wire::ChatMessage& out) {
  const std::pair<const char*, std::string*> texts[] = {
      {"name", &out.name},
      {"tool_call_id", &out.tool_call_id},
      {"reasoning_content", &out.reasoning_content}};
  for (const auto& [key, text] : texts) {
    const OrderedJson* found = field_of(message, key);
    if (found == nullptr) continue;
    if (!found->is_string())
      return wrong(fmt::format("{}/{}", path, key), fmt::format("{} of a message is a text", key));
    *text = found->get<std::string>();
  }
  return {};
}

}  // namespace

std::expected<std::string, ApiError> read_content_text(const OrderedJson& content,
                                                       const std::string& path) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array())
    return wrong(path, "the content of a message is a text, or an array of parts of type 'text'");
  std::string joined;
  for (std::size_t i = 0; i < content.size(); ++i)
    joined += TRY(read_part(content[i], fmt::format("{}/{}", path, i)));
  return joined;
}

std::expected<std::string, ApiError> read_role(const OrderedJson& message,
                                               const std::string& path) {
  if (!message.is_object()) return wrong(path, "a message is an object with the text 'role'");
  const OrderedJson* role = field_of(message, "role");
  if (role == nullptr || !role->is_string())
    return wrong(path + "/role", "each message is an object with the text 'role'");
  const auto& text = role->get_ref<const std::string&>();
  if (is_chat_role(text)) return text;
  return wrong(path + "/role",
               fmt::format("unknown role '{}'; send system, developer, user, assistant or tool",
                           printable_excerpt(text)));
}

std::expected<std::vector<wire::ChatMessage>, ApiError> read_chat_messages(
    const OrderedJson* messages) {
  if (messages == nullptr || !messages->is_array() || messages->empty())
    return wrong("messages", "messages is an array of at least one message");
  std::vector<wire::ChatMessage> all;
  for (const OrderedJson& message : *messages) {
    const std::string path = fmt::format("messages/{}", all.size());
    wire::ChatMessage& read = all.emplace_back();
    read.role = TRY(read_role(message, path));
    read.content = TRY(read_content(message, read.role, path));
    read.tool_calls = TRY(read_calls(message, path));
    TRY(read_texts(message, path, read));
  }
  return all;
}

}  // namespace leasehold::http
