/// Finds tool calls in a model's text, which arrives in pieces. Pure.
///
/// A call has one of three forms, on which these model families were trained:
///   Hermes, Qwen   <tool_call>{"name": N, "arguments": {…}}</tool_call>, any number, anywhere
///   Mistral        [TOOL_CALLS][{"name": N, "arguments": {…}}, …]
///   Llama 3.1      {"name": N, "parameters": {…}} at the beginning, alone or after
///                  <|python_tag|>; further ones after ";"
/// Anything that cannot be read as a call stays text, with its markers. Whitespace before a call is
/// dropped. The result does not depend on how the text is cut into pieces.
///
/// Work is linear in the text. Threads: one.
/// Source: the chat templates of Qwen 2.5, Mistral 7B v0.3 and Llama 3.1.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leasehold {

struct ToolCall {
  std::string name;
  std::string arguments;  ///< JSON: an object of at most 64 levels.
  bool operator==(const ToolCall&) const = default;
};

class ToolCallParser {
 public:
  static constexpr std::size_t kMaxCallBytes = 256 << 10;  ///< A longer call stays text.

  struct Output {
    std::string text;
    std::vector<ToolCall> calls;
    bool operator==(const Output&) const = default;
  };

  /// A call of a tool that is not in `tools` stays text. If `tools` is empty, every name is a tool.
  explicit ToolCallParser(std::vector<std::string> tools = {}) : tools_(std::move(tools)) {}

  /// Returns what is certain after this piece.
  Output push(std::string_view piece);
  /// Returns the rest, at the end of the text. A call without its end marker counts.
  Output finish();

  /// The calls in a JSON object or an array of objects. Returns nothing unless all of them are
  /// calls.
  static std::optional<std::vector<ToolCall>> calls_of(std::string_view json);

 private:
  enum class State { Start, Text, Value, Closing, Next };
  std::optional<std::vector<ToolCall>> held_calls() const;
  bool step(Output& out);
  bool step_text(Output& out);
  bool step_value();
  bool step_closing(Output& out);
  bool step_next();
  void begin_value(std::size_t at, bool is_hermes);
  void give_up(Output& out, std::size_t bytes);

  std::vector<std::string> tools_;
  State state_ = State::Start;
  std::string held_;
  bool is_hermes_ = false;  // the call ends with a marker
  // State of the value in held_: where it begins, and how far it was scanned.
  std::size_t value_at_ = 0;
  std::size_t scanned_ = 0;
  std::uint32_t depth_ = 0;
  bool in_string_ = false;
  bool is_escaped_ = false;
};

}  // namespace leasehold
