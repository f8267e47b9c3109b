/// Writes the answers of `/v1/messages`: the content blocks, as one object or as typed events.
/// Pure.
///
/// The blocks are thinking, text and tool_use, in the order in which the model generates them; an
/// answer has at least one. One block is open at a time. A call is only known when it is complete,
/// so its input is one input_json_delta. A thinking block has no signature. A stream begins with
/// message_start, unless it fails before, and ends with message_stop or error.
///
/// Source: the reference of Anthropic's Messages API.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "worker/http/api/api_answer.hpp"

namespace leasehold::http {

class MessageWriter final : public AnswerWriter {
 public:
  MessageWriter(const ApiRequest& request, std::string model);

  ServerEvents add(ChoicePart part, UsageCount so_far) override;
  ServerEvents end(UsageCount usage) override;
  ServerEvents failed(const Error& error) override;
  ServerEvents beat() override;
  std::string whole(UsageCount usage) override;

 private:
  using Json = nlohmann::json;

  void begin(UsageCount so_far);
  void add_text(const char* type, const char* member, const std::string& text);
  void open(Json block);
  void close();
  void add_call(const ApiToolCall& call);
  void note_end(const ChoicePart& part, UsageCount usage);
  void emit(const char* type, Json fields);
  Json usage_json(UsageCount usage) const;

  bool is_stream_;
  bool omits_thinking_;
  std::uint32_t max_tokens_;
  Json base_;  // the message before its first block
  ServerEvents events_;
  bool began_ = false;
  Json content_ = Json::array();
  std::optional<Json> block_;          // the open one
  Json stop_;                          // stop_reason and stop_sequence, once the text has ended
  std::uint32_t thinking_tokens_ = 0;  // tokens up to the end of the thoughts
};

}  // namespace leasehold::http
