/// Separates a model's reasoning, "<think>…</think>" at the beginning of a text, from the rest of
/// the text, which arrives in pieces. Pure.
///
/// Whitespace around the markers belongs to neither. Reasoning without the end marker lasts to the
/// end of the text. Threads: one.
#pragma once

#include <string>
#include <string_view>

namespace leasehold {

class ReasoningParser {
 public:
  struct Output {
    std::string reasoning;
    std::string text;
    bool operator==(const Output&) const = default;
  };

  /// `begins_inside`: the prompt ended with "<think>".
  explicit ReasoningParser(bool begins_inside = false)
      : state_(begins_inside ? State::Inside : State::Start) {}

  /// Returns what is certain after this piece.
  Output push(std::string_view piece);
  /// Returns the rest, at the end of the text.
  Output finish();

 private:
  enum class State { Start, Inside, After, Text };
  bool step(Output& out);

  State state_;
  std::string held_;
  bool has_reasoned_ = false;
};

}  // namespace leasehold
