/// Renders messages to a prompt with the chat template of a model file.
///
///   ChatTemplate chat = TRY(ChatTemplate::from_metadata(file));
///   const jinja::Value value = messages_value(messages);
///   MarkedText prompt = TRY(chat.render({.messages = value, .now_unix_s = t}));
///
/// The prompt contains control tokens by name ("<|im_start|>"), including BOS if the template
/// writes it, and records which bytes the template wrote. Tokenizer::encode turns names into tokens
/// only in those bytes, and adds no second BOS.
///
/// Source: Hugging Face, "Templates for chat models"; metadata key `tokenizer.chat_template` of the
/// GGUF specification.
/// Lifetime: independent of the file. Threads: any number at a time.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/model/gguf/gguf.hpp"
#include "worker/text/chat/jinja/template.hpp"

namespace leasehold {

struct ChatMessage {
  std::string role;
  std::optional<std::string> content;  ///< Missing content becomes None.
  /// Further members of the message, such as `tool_calls`.
  std::vector<std::pair<std::string, jinja::Value>> more = {};
};

/// True for the roles of OpenAI's API. Templates build the names of control tokens from roles, as
/// in "<|" + role + "|>", so a role of this list counts as text that the template wrote.
bool is_chat_role(std::string_view role);

/// The messages as a template value.
jinja::Value messages_value(std::span<const ChatMessage> messages);

/// The texts of the control tokens that templates can use; empty if the vocabulary has none.
struct SpecialTexts {
  std::optional<std::string> bos, eos, unknown, padding;
};

struct ChatRequest {
  jinja::Value messages;
  jinja::Value tools = jinja::Value(jinja::None{});
  /// Ends the prompt with the beginning of the assistant's turn.
  bool add_generation_prompt = true;
  /// Further variables of the template, such as `enable_thinking`.
  jinja::Template::Variables extra;
  /// The time that strftime_now prints.
  std::int64_t now_unix_s = 0;
};

/// What a template expects in a turn that only calls tools. Templates differ: with another style, a
/// template fails, leaves the call out, or prints "None".
struct CallStyle {
  bool empty_content_as_text = false;  ///< A missing content is an empty text, not None.
  bool arguments_as_text = false;      ///< The arguments are JSON text, not an object.
};

class ChatTemplate {
 public:
  /// Parses the file's template, or ChatML if it has none.
  /// Errors: UnsupportedModel naming the construct and its line; FileCorrupt for ids outside the
  /// vocabulary; those of GgufFile::get.
  static Result<ChatTemplate> from_metadata(const GgufFile& file);

  /// Parses `source` in place of the file's template. Errors: as from_metadata.
  static Result<ChatTemplate> replaced(const GgufFile& file, std::string_view source);

  static Result<ChatTemplate> parse(std::string_view source, SpecialTexts special);

  /// Errors: BadRequest if the template raises an exception, with the text of raise_exception;
  /// UnsupportedModel for an unsupported construct; PromptTooLong beyond a limit.
  Result<MarkedText> render(const ChatRequest& request, const jinja::Limits& limits = {}) const;

  /// True if the template prints the tools of a request.
  bool uses_tools() const { return uses_tools_; }
  /// True if the template fails for a tool without a description, which clients may leave out.
  bool needs_tool_descriptions() const { return needs_tool_descriptions_; }
  /// True if the template prints the calls in an assistant's message.
  bool prints_calls() const { return prints_calls_; }
  /// True if the template prints a system message before the first one of the user.
  bool has_system_role() const { return has_system_role_; }
  /// True if the template mentions the role "developer". Otherwise such a message needs the role
  /// "system".
  bool has_developer_role() const { return has_developer_role_; }
  const CallStyle& call_style() const { return call_style_; }

 private:
  ChatTemplate(jinja::Template parsed, SpecialTexts special)
      : template_(std::move(parsed)), special_(std::move(special)) {}
  void probe_calls();
  std::optional<bool> prints_probe(std::span<const ChatMessage> messages,
                                   jinja::Value tools = jinja::Value(jinja::None{})) const;
  bool prints_tools() const;
  bool fails_without_description() const;

  jinja::Template template_;
  SpecialTexts special_;
  bool uses_tools_ = false;
  bool needs_tool_descriptions_ = false;
  bool prints_calls_ = false;
  bool has_system_role_ = false;
  bool has_developer_role_ = false;
  CallStyle call_style_;
};

}  // namespace leasehold
