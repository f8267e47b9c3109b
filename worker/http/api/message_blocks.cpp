#include "worker/http/api/message_blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "common/utf8.hpp"
#include "worker/http/api/chat_translation.hpp"

namespace leasehold::http {
namespace {

bool has(const OrderedJson& message, const char* key) {
  return field_of(message, key) != nullptr;
}

Read<std::string> text_member(const Field& block, const char* key) {
  const Field member = block[key];
  if (member.is_text()) return member.text();
  return member.refuse(
      fmt::format("{} of a {} block is a text", key, printable_excerpt(block["type"].text())));
}

class Conversation {
 public:
  Read<void> add_system(const Field& system) {
    const bool is_nothing = !system || (system.is_text() && system.text().empty());
    return is_nothing ? Read<void>() : add_content("system", system);
  }

  Read<void> add_message(const Field& message) {
    if (!message.is_object())
      return message.refuse("a message is an object with 'role' and 'content'");
    const std::string role = TRY(word_of(message["role"], {"user", "assistant", "system"}));
    const Field content = message["content"];
    const bool is_nothing = !content || (content.is_array() && content.json().empty());
    if (is_nothing && role != "assistant")
      return content.refuse("content is a text, or an array of at least one block");
    if (!is_nothing) TRY(add_content(role, content));
    if (role == "assistant") end_assistant();
    return {};
  }

  OrderedJson take() { return std::move(messages_); }

 private:
  struct BlockKind {
    std::string_view type;
    std::string_view role;  ///< The only role that has such blocks; empty: every role.
    Read<void> (Conversation::*add)(std::string_view role, const Field& block);
  };
  static const BlockKind kBlocks[];

  Read<void> add_content(std::string_view role, const Field& content) {
    if (content.is_text()) return add_text(role, content.text());
    if (!content.is_array())
      return content.refuse(fmt::format("{} is a text or an array of blocks", content.path()));
    for (std::size_t i = 0; i < content.json().size(); ++i) TRY(add_block(role, content.at(i)));
    return {};
  }

  Read<void> add_block(std::string_view role, const Field& block);

  Read<void> add_text(std::string_view role, const std::string& text) {
    append(turn(role), "content", text, role == "assistant" ? "" : "\n");
    return {};
  }

  Read<void> add_text_block(std::string_view role, const Field& block) {
    return add_text(role, TRY(text_member(block, "text")));
  }

  Read<void> add_thinking(std::string_view role, const Field& block) {
    append(turn(role), "reasoning_content", TRY(text_member(block, "thinking")), "");
    return {};
  }

  Read<void> skip(std::string_view, const Field&) { return {}; }

  Read<void> add_call(std::string_view role, const Field& block) {
    const std::string id = TRY(text_member(block, "id"));
    const std::string name = TRY(text_member(block, "name"));
    const Field input = block["input"];
    if (!input.is_object()) return input.refuse("input of a tool_use block is an object");
    calls_.insert(id);
    turn(role)["tool_calls"].push_back(
        {{"id", id},
         {"type", "function"},
         {"function", {{"name", name}, {"arguments", input.json().dump()}}}});
    return {};
  }

  Read<void> add_result(std::string_view, const Field& block) {
    const std::string id = TRY(text_member(block, "tool_use_id"));
    if (!calls_.contains(id)) {
      return block["tool_use_id"].refuse(
          fmt::format("no tool_use block before this result has the id '{}'; send it, too",
                      printable_excerpt(id)));
    }
    std::string text = TRY(result_text(block["content"]));
    if (TRY(flag_of(block["is_error"], false))) text.insert(0, "Error: ");
    messages_.push_back({{"role", "tool"}, {"tool_call_id", id}, {"content", std::move(text)}});
    return {};
  }

  static Read<std::string> result_text(const Field& content) {
    Conversation result;
    if (content) TRY(result.add_content("tool", content));
    return result.messages_.empty() ? "" : result.messages_[0]["content"].get<std::string>();
  }

  /// The message that the next block of this role belongs to: the last one, or a new one if the
  /// last is of another role.
  OrderedJson& turn(std::string_view role) {
    if (messages_.empty() || messages_.back()["role"] != role)
      messages_.push_back({{"role", role}});
    return messages_.back();
  }

  static void append(OrderedJson& message, const char* key, const std::string& text,
                     std::string_view separator) {
    if (!has(message, key)) return void(message[key] = text);
    message[key].get_ref<std::string&>().append(separator).append(text);
  }

  /// A turn may be empty, or have been cut off after its thoughts.
  void end_assistant() {
    OrderedJson& message = turn("assistant");
    if (!has(message, "content") && !has(message, "tool_calls")) message["content"] = "";
  }

  OrderedJson messages_ = OrderedJson::array();
  std::set<std::string> calls_;  // ids of the calls so far
};

const Conversation::BlockKind Conversation::kBlocks[] = {
    {"text", "", &Conversation::add_text_block},
    {"tool_use", "assistant", &Conversation::add_call},
    {"tool_result", "user", &Conversation::add_result},
    {"thinking", "assistant", &Conversation::add_thinking},
    {"redacted_thinking", "assistant", &Conversation::skip}};

Read<void> Conversation::add_block(std::string_view role, const Field& block) {
  const Field type = block["type"];
  const auto kind = std::ranges::find(kBlocks, type.text(), &BlockKind::type);
  if (kind == std::end(kBlocks)) {
    return type.refuse(fmt::format("a block of type {} is not supported; send text",
                                   type ? printable_excerpt(type.json().dump()) : "null"));
  }
  if (!kind->role.empty() && kind->role != role) {
    return type.refuse(
        fmt::format("a {} block is part of a message with the role {}", kind->type, kind->role));
  }
  return (this->*kind->add)(role, block);
}

}  // namespace

Read<OrderedJson> chat_messages_of(const Field& system, const Field& messages) {
  if (!messages.is_array() || messages.json().empty())
    return messages.refuse("messages is an array of at least one message");
  Conversation conversation;
  TRY(conversation.add_system(system));
  for (std::size_t i = 0; i < messages.json().size(); ++i)
    TRY(conversation.add_message(messages.at(i)));
  return conversation.take();
}

}  // namespace leasehold::http
