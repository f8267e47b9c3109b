/// Writes the answers of `/v1/responses`: the output items, as one object or as typed events with
/// sequence numbers. Pure.
///
/// The items are reasoning, messages and calls, in the order in which the model generates them. At
/// most one item is open at a time. A stream ends with response.completed, response.incomplete or
/// response.failed, and has no "[DONE]".
///
/// Source: the reference of OpenAI's Responses API.
#pragma once

#include <nlohmann/json.hpp>

#include "worker/http/api/api_answer.hpp"

namespace leasehold::http {

class ResponseWriter final : public AnswerWriter {
 public:
  ResponseWriter(const ApiRequest& request, std::string model, std::int64_t created_unix_s);

  ServerEvents add(ChoicePart part, UsageCount so_far) override;
  ServerEvents end(UsageCount usage) override;
  ServerEvents failed(const Error& error) override;
  std::string whole(UsageCount usage) override;

 private:
  using Json = nlohmann::json;
  enum class Kind : std::uint8_t { None, Thoughts, Message };

  void begin();
  void add_text(Kind kind, const std::string& text);
  void open(Kind kind);
  void close(std::string_view status);
  void add_call(const ApiToolCall& call);
  void emit(std::string_view type, Json fields);
  Json item(std::string_view status) const;
  Json part() const;
  Json place() const;
  Json response(std::string_view status) const;
  Json ended(UsageCount usage) const;
  std::string new_id(std::string_view prefix) const;

  bool is_stream_;
  std::string request_id_;
  Json base_;  // members that the response has in every state
  ServerEvents events_;
  std::uint64_t sequence_ = 0;
  bool began_ = false;
  bool is_cut_off_ = false;  // the text ended at the token limit
  Json output_ = Json::array();
  // State of the open item:
  Kind kind_ = Kind::None;
  std::string id_;
  std::string text_;
  std::vector<TokenLogprobs> logprobs_;
  std::vector<TokenLogprobs> new_logprobs_;  // of tokens whose text has not arrived
  std::uint32_t reasoning_tokens_ = 0;       // tokens up to the end of the reasoning
};

}  // namespace leasehold::http
