/// Turns the tokens of one choice into the parts of its answer. In a chat these are the reasoning,
/// the tool calls and the rest of the text. A replayed text gets the same call ids. Pure.
///
/// Lifetime: the tokenizer outlives it. Threads: one.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "worker/http/api/api_answer.hpp"
#include "worker/text/chat/harmony.hpp"
#include "worker/text/chat/reasoning.hpp"
#include "worker/text/tokenizer/stream_decoder.hpp"

namespace leasehold::http {

/// Puts the names of markers into a text: some models' markers are control tokens, which have no
/// text.
class MarkerNames {
 public:
  explicit MarkerNames(const Tokenizer& tokenizer) : tokenizer_(&tokenizer), decoder_(tokenizer) {}

  /// The token's text, with the names of the markers before its end.
  std::string add(const wire::TokenEmitted& token);
  std::string end(std::string_view rest);
  /// Generated text that the worker has not sent. At the end of the text: begins with the stop
  /// string that ended it.
  std::string_view unsent() const { return unsent_; }

 private:
  struct Marker {
    std::string name;
    std::size_t at = 0;  // byte offset in the text without markers
  };
  std::string place(std::string_view text);

  const Tokenizer* tokenizer_;
  StreamDecoder decoder_;  // its text includes what the worker holds back
  std::string unsent_;
  std::size_t decoded_bytes_ = 0;
  std::size_t received_bytes_ = 0;
  std::deque<Marker> markers_;  // beyond the text received so far
};

/// Divides the text of a chat's choice.
class ChatText {
 public:
  ChatText(const ApiRequest& request, std::uint32_t choice, const Tokenizer& tokenizer);

  void add(const wire::TokenEmitted& token, ChoicePart& part) { add(markers_.add(token), part); }
  /// Adds the rest of the text. A call that was cut off stays text.
  void end(std::string_view rest, ChoicePart& part);
  /// The first of `stops` that follows the ended text; empty: none.
  std::string stop_of(std::span<const std::string> stops) const;
  bool has_calls() const { return calls_ > 0; }

 private:
  bool is_forced() const {
    return tool_form_ == ToolForm::Call || tool_form_ == ToolForm::Arguments;
  }
  void add(std::string_view text, ChoicePart& part);
  void add_harmony(HarmonyParser::Output said, ChoicePart& part);
  void add_calls(std::vector<ToolCall> calls, ChoicePart& part);
  void end_forced(ChoicePart& part);

  std::string call_prefix_;  // of the ids of calls
  ToolForm tool_form_;
  bool parallel_calls_;
  std::string tool_name_;
  MarkerNames markers_;
  ReasoningParser reasoning_;
  ToolCallParser tool_calls_;
  std::optional<HarmonyParser> harmony_;  // instead of the two before it
  std::string forced_;                    // text so far of a call that a schema forces
  std::size_t calls_ = 0;                 // number of calls so far
};

class ChoiceText {
 public:
  /// `submit` is the submission of this choice.
  ChoiceText(std::uint32_t index, const ApiRequest& request, const wire::RequestSubmit& submit,
             const Tokenizer& tokenizer);

  /// Keeps tokens of the prompt for the next part.
  void add(wire::PromptLogprobs prompt);
  ChoicePart add(const wire::TokenEmitted& token);
  /// `rest` is the text that the worker held back.
  ChoicePart end(std::string_view rest, std::string_view completion_reason);

 private:
  ChoicePart next_part();
  void add_echo(ChoicePart& part);
  TextLogprob text_logprob(std::int32_t token, float logprob) const;

  std::uint32_t index_;
  const Tokenizer* tokenizer_;
  std::string echo_;  // empty once it is sent
  bool echoes_logprobs_ = false;
  bool has_prompt_logprobs_ = false;
  std::vector<wire::PromptToken> prompt_;  // empty once it is sent
  std::optional<ChatText> chat_;           // not for a completion
  std::vector<std::string> stops_;
  std::size_t text_offset_ = 0;  // of the next token, in characters
};

}  // namespace leasehold::http
