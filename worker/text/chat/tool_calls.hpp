/// Finds tool calls in a model's text, which arrives in pieces. Pure.
///
/// A call has one of the forms of call_forms.hpp, or that of Llama 3.1: at the beginning, alone or
/// after <|python_tag|>, {"name": N, "parameters": {…}}; further ones after ";". A call is returned
/// as soon as it ends. Anything that cannot be read as a call stays text, with its markers.
/// Whitespace before a call is dropped. The result does not depend on how the text is cut into
/// pieces.
///
/// Work grows no faster than sorting the members of one object. Threads: one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "worker/text/chat/call_forms.hpp"

namespace leasehold {

class ToolCallParser {
 public:
  static constexpr std::size_t kMaxCallBytes = 256 << 10;  ///< A longer call stays text.
  static constexpr std::size_t kMaxNameBytes = 256;        ///< Limit for a name before [ARGS].

  struct Output {
    std::string text;
    std::vector<ToolCall> calls;
    bool operator==(const Output&) const = default;
  };

  /// A call of a tool that is not in `tools` stays text. If `tools` is empty, every name is a tool.
  explicit ToolCallParser(std::vector<CalledTool> tools = {}) : tools_(std::move(tools)) {}

  /// Returns what is certain after this piece.
  Output push(std::string_view piece);
  /// Returns the rest, at the end of the text. A call without its end marker counts.
  Output finish();

 private:
  enum class State { Start, Text, Section, Begun, Value, Body, Closing, Next };
  using Calls = std::optional<std::vector<ToolCall>>;
  Calls known(Calls calls) const;
  Calls held_calls() const;
  Calls cut_calls() const;
  bool step(Output& out);
  bool step_text(Output& out);
  bool step_section(Output& out);
  bool step_begun(Output& out);
  bool step_value();
  bool step_body(Output& out);
  bool step_closing(Output& out);
  bool step_next();
  bool finish_call(Calls calls, std::size_t end, Output& out);
  void begin_call(std::size_t at, const CallForm* form);
  void give_up(Output& out, std::size_t bytes);

  std::vector<CalledTool> tools_;
  State state_ = State::Start;
  std::string held_;
  const CallForm* form_ = nullptr;  // null for a call without markers
  std::string name_;                // before [ARGS]
  // State of the call in held_: where it begins, and how far it was scanned.
  std::size_t call_at_ = 0;
  std::size_t value_at_ = 0;
  std::size_t scanned_ = 0;
  std::uint32_t depth_ = 0;
  bool in_string_ = false;
  bool is_escaped_ = false;
};

}  // namespace leasehold
