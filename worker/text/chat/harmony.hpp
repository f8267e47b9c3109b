/// Divides a model's turn in OpenAI's harmony format, which arrives in pieces, into its reasoning,
/// its tool calls and the rest of the text. Pure.
///
///   HEADER<|message|>BODY<|end|><|start|>HEADER<|message|>BODY …
///
/// A header names a channel, "<|channel|>analysis", and in a call the recipient,
/// "to=functions.NAME". A body for a tool is a call if it is a JSON object; a body of the channel
/// "analysis" is reasoning; every other body is text. Empty lines separate bodies of a kind. A turn
/// that begins with no header is text, such as one that a grammar forces. Whitespace at the end of
/// a body is dropped, and so is a header without a body. The result does not depend on how the text
/// is cut into pieces.
///
/// Work is linear in the text. Threads: one.
/// Source: OpenAI 2025, "OpenAI harmony response format", and the chat template of gpt-oss.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "worker/text/chat/tool_calls.hpp"

namespace leasehold {

class HarmonyParser {
 public:
  static constexpr std::size_t kMaxHeaderBytes = 4 << 10;  ///< A longer header is text.

  struct Output {
    std::string reasoning;
    std::string text;
    std::vector<ToolCall> calls;
    bool operator==(const Output&) const = default;
  };

  /// A call of a tool that is not in `tools` is text. If `tools` is empty, every name is a tool.
  explicit HarmonyParser(std::vector<std::string> tools = {}) : tools_(std::move(tools)) {}

  /// Returns what is certain after this piece.
  Output push(std::string_view piece);
  /// Returns the rest, at the end of the turn. A call without its end marker counts.
  Output finish();

 private:
  enum class State { Between, Header, Body };
  enum class Body { Text, Reasoning, Call };
  bool step(Output& out);
  bool step_between();
  bool step_header();
  bool step_body(Output& out);
  void begin_body(std::string_view header);
  void add(std::string_view body, Output& out);
  void end_body(Output& out);

  std::vector<std::string> tools_;
  State state_ = State::Between;
  Body body_ = Body::Text;
  std::string held_;
  std::string tool_;       // of a call
  std::string arguments_;  // of a call, so far
  bool is_new_body_ = true;
  bool has_text_ = false;
  bool has_reasoning_ = false;
};

}  // namespace leasehold
