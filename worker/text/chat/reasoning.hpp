/// Separates a model's reasoning at the beginning of a text from the rest of the text, which
/// arrives in pieces. Pure.
///
///   Qwen, GLM, DeepSeek, Nemotron   <think>…</think>
///   Ministral 3                     [THINK]…[/THINK]
///   Command R7B, Command A          <|START_THINKING|>…<|END_THINKING|>
///   Gemma 4                         <|channel>thought\n…<channel|>
/// Whitespace around the markers belongs to neither. Reasoning without the end marker lasts to the
/// end of the text. Threads: one.
/// Source: the chat templates of these models.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace leasehold {

/// True if a prompt ends with a marker that begins reasoning, so that the answer continues it.
bool ends_inside_reasoning(std::string_view prompt);

/// The names of tokens in the markers. A file may mark them as control tokens, which have no text.
std::span<const std::string_view> reasoning_tokens();

class ReasoningParser {
 public:
  struct Output {
    std::string reasoning;
    std::string text;
    bool operator==(const Output&) const = default;
  };

  /// `begins_inside`: ends_inside_reasoning is true of the prompt.
  explicit ReasoningParser(bool begins_inside = false)
      : state_(begins_inside ? State::Inside : State::Start) {}

  /// Returns what is certain after this piece.
  Output push(std::string_view piece);
  /// Returns the rest, at the end of the text.
  Output finish();

 private:
  enum class State { Start, Inside, After, Text };
  bool step(Output& out);
  bool step_start();
  bool step_inside(Output& out);

  State state_;
  std::string held_;
  std::string_view end_;  // the marker that ends the reasoning; empty: the first one of any form
  bool has_reasoned_ = false;
};

}  // namespace leasehold
