/// Turns the tokens of one choice into the parts of its answer. In a chat these are the reasoning,
/// the tool calls and the rest of the text. A replayed text gets the same call ids. Pure.
///
/// Lifetime: the tokenizer outlives it. Threads: one.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "worker/http/api/api_answer.hpp"
#include "worker/text/chat/reasoning.hpp"
#include "worker/text/tokenizer/stream_decoder.hpp"

namespace leasehold::http {

class ChoiceText {
 public:
  /// `submit` is the submission of this choice.
  ChoiceText(std::uint32_t index, const ApiRequest& request, const wire::RequestSubmit& submit,
             const Tokenizer& tokenizer);

  ChoicePart add(const wire::TokenEmitted& token);
  /// `rest` is the text that the worker held back.
  ChoicePart end(std::string_view rest, std::string_view completion_reason);

 private:
  ChoicePart part_of(std::string_view text);
  void add_text(std::string_view text, ChoicePart& part);
  void add_calls(std::vector<ToolCall> calls, ChoicePart& part);
  void end_text(ChoicePart& part);
  std::string with_markers(const wire::TokenEmitted& token);
  std::string place_markers(std::string_view text);
  TextLogprob text_logprob(std::int32_t token, float logprob) const;

  std::uint32_t index_;
  std::string request_id_;
  const Tokenizer* tokenizer_;
  std::string echo_;  // empty once it is sent
  bool is_chat_;
  ToolForm tool_form_;
  bool parallel_calls_;
  std::string tool_name_;
  ReasoningParser reasoning_;
  ToolCallParser tool_calls_;
  /// A control token that has no text of its own.
  struct Marker {
    std::string name;
    std::size_t at = 0;  // byte offset in the text without markers
  };
  StreamDecoder decoder_;  // also counts text that the worker holds back
  std::size_t decoded_bytes_ = 0;
  std::size_t received_bytes_ = 0;
  std::deque<Marker> markers_;   // beyond the text received so far
  std::string forced_;           // text so far of a call that a schema forces
  std::size_t calls_ = 0;        // number of calls so far
  std::size_t text_offset_ = 0;  // of the next token, in characters
};

}  // namespace leasehold::http
