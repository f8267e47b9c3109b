/// Writes the answer to a request: one object, or the events of a stream. Pure.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "worker/http/api_request.hpp"
#include "worker/text/chat/tool_calls.hpp"

namespace leasehold::http {

/// Ends a stream of chunks.
inline constexpr std::string_view kDone = "[DONE]";

struct UsageCount {
  std::uint32_t prompt_tokens = 0;
  std::uint32_t completion_tokens = 0;
};

struct TextLogprob {
  std::string text;  ///< Of the token; may end within a character.
  float logprob = 0;
};

/// A token of an answer with logprobs.
struct TokenLogprobs {
  TextLogprob token;
  std::vector<TextLogprob> top;  ///< Most likely first.
  std::size_t text_offset = 0;   ///< In characters of the choice's text.
};

struct ApiToolCall {
  std::size_t index = 0;  ///< Of the calls of its choice.
  std::string id;
  ToolCall call;
};

/// What a choice has: all of it, or what is new.
struct ChoicePart {
  std::uint32_t index = 0;
  std::string text;
  std::string reasoning;
  std::vector<ApiToolCall> calls;
  std::vector<TokenLogprobs> logprobs;  ///< Empty unless the request asked for them.
  std::string_view finish_reason;       ///< Empty: the choice goes on.
};

/// Adds what is new to what a choice has.
void append(ChoicePart& whole, ChoicePart part);

/// Takes the parts of an answer as they come. For a request that streams each call returns what to
/// send; for another one only `whole` returns something.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;

  virtual ServerEvents add(ChoicePart part, UsageCount so_far) = 0;
  /// All choices have ended.
  virtual ServerEvents end(UsageCount usage) = 0;
  /// The stream ends with an error.
  virtual ServerEvents failed(const Error& error) = 0;
  /// The answer to a request that does not stream, once all choices have ended.
  virtual std::string whole(UsageCount usage) = 0;
};

/// The writer of the request's API.
std::unique_ptr<AnswerWriter> answer_writer(const ApiRequest& request, std::string model,
                                            std::int64_t created_unix_s);

/// JSON: the tokens as chats and responses show them.
nlohmann::json logprobs_json(std::span<const TokenLogprobs> tokens);

/// In one line. Bytes that are not UTF-8 are replaced.
std::string line_of(const nlohmann::json& json);

/// "stop" or "length" for a CompletionReason.
std::string_view finish_reason(std::string_view completion_reason);

}  // namespace leasehold::http
