/// Messages made into the prompt a model was trained on, by the model file's own template.
///
///   ChatTemplate chat = TRY(ChatTemplate::from_metadata(file));
///   std::string prompt = TRY(chat.render({.messages = messages_value(messages), .now_unix_s =
///   t}));
///
/// The prompt spells out the model's control tokens ("<|im_start|>"), the one at its beginning too
/// where the template has one. Its text is to be encoded with those read as tokens, and without a
/// second one at the beginning.
///
/// Source: Hugging Face, "Templates for chat models"; metadata key `tokenizer.chat_template` of the
/// GGUF specification.
/// Lifetime: independent of the file. Threads: any number may use one.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "worker/gguf/gguf.hpp"
#include "worker/text/chat/jinja/template.hpp"

namespace leasehold {

struct ChatMessage {
  std::string role;
  std::string content;
};

/// As a template sees them.
jinja::Value messages_value(std::span<const ChatMessage> messages);

/// The control tokens templates may name, as the vocabulary writes them; none where it has none.
struct SpecialTexts {
  std::optional<std::string> bos, eos, unknown, padding;
};

struct ChatRequest {
  jinja::Value messages;
  jinja::Value tools = jinja::Value(jinja::None{});
  /// Ends with what the assistant's turn begins with.
  bool add_generation_prompt = true;
  /// What else the template asks for, such as `enable_thinking`.
  jinja::Template::Variables extra;
  /// The time the template is told.
  std::int64_t now_unix_s = 0;
};

class ChatTemplate {
 public:
  /// The file's own; ChatML when it has none.
  /// Errors: UnsupportedModel naming the construct and its line; FileCorrupt for ids that are no
  /// tokens; those of GgufFile::get.
  static Result<ChatTemplate> from_metadata(const GgufFile& file);

  static Result<ChatTemplate> parse(std::string_view source, SpecialTexts special);

  /// Errors: BadRequest for messages the template refuses (raise_exception, with its text) or does
  /// not suit; UnsupportedModel for a construct we lack; PromptTooLong beyond a limit.
  Result<std::string> render(const ChatRequest& request, const jinja::Limits& limits = {}) const;

  /// True when the file had no template.
  bool is_fallback() const { return is_fallback_; }

 private:
  ChatTemplate(jinja::Template parsed, SpecialTexts special)
      : template_(std::move(parsed)), special_(std::move(special)) {}

  jinja::Template template_;
  SpecialTexts special_;
  bool is_fallback_ = false;
};

}  // namespace leasehold
