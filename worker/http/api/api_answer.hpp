/// Writes the answer to a request: one object, or the events of a stream. Pure.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "worker/http/api/api_request.hpp"
#include "worker/text/chat/tool_calls.hpp"

namespace leasehold::http {

/// Ends a stream of chunks.
inline constexpr std::string_view kDone = "[DONE]";

struct UsageCount {
  std::uint32_t prompt_tokens = 0;
  std::uint32_t completion_tokens = 0;
  /// Prompt tokens that the prefix cache held (wire::RequestCompleted::cached_tokens). Known only
  /// at the end: usage in an earlier chunk has 0.
  std::uint32_t cached_tokens = 0;
};

struct TextLogprob {
  std::string text;  ///< The token's text, which may end within a character.
  float logprob = 0;
};

/// One token of an answer, with its logprobs.
struct TokenLogprobs {
  TextLogprob token;
  std::vector<TextLogprob> top;  ///< Most likely first.
  std::size_t text_offset = 0;   ///< Position in the choice's text, in characters.
  bool is_first = false;         ///< The first token of an echoed prompt, which has no logprob.
};

/// A token that the model could have read or that it read at one position of a prompt.
struct PromptCandidate {
  std::int32_t token = 0;
  TextLogprob text;
  std::size_t rank = 0;  ///< 1: most likely. 0: not known, beyond the requested alternatives.
};
/// The token of the prompt, then the alternatives, most likely first. Empty for the first position.
using PromptPosition = std::vector<PromptCandidate>;

struct ApiToolCall {
  std::size_t index = 0;  ///< Among the calls of its choice.
  std::string id;
  ToolCall call;
};

/// The contents of one choice: all of them, or only those since the last part.
struct ChoicePart {
  std::uint32_t index = 0;
  std::string text;
  std::string reasoning;
  std::vector<ApiToolCall> calls;
  std::vector<TokenLogprobs> logprobs;          ///< Empty unless the request asked for them.
  std::vector<PromptPosition> prompt_logprobs;  ///< Only for ApiRequest::prompt_logprobs.
  std::string_view finish_reason;               ///< Empty: the choice goes on.
  std::string stop;  ///< The stop string that ended the text; empty: none did.
};

/// Adds the new `part` of a choice to `whole`.
void append(ChoicePart& whole, ChoicePart part);

/// Builds an answer from its parts. If the request streams, each call returns the events to send.
/// Otherwise only `whole` returns anything.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;

  virtual ServerEvents add(ChoicePart part, UsageCount so_far) = 0;
  /// Call when all choices have ended.
  virtual ServerEvents end(UsageCount usage) = 0;
  /// Ends the stream with an error.
  virtual ServerEvents failed(const Error& error) = 0;
  /// What a silent stream sends; without events it sends a comment.
  virtual ServerEvents beat() { return {}; }
  /// The answer to a request that does not stream. Call when all choices have ended.
  virtual std::string whole(UsageCount usage) = 0;
};

/// The id of the answer, such as "chatcmpl-req-1".
std::string answer_id(const ApiRequest& request);

/// Makes the writer for the API of the request.
std::unique_ptr<AnswerWriter> answer_writer(const ApiRequest& request, std::string model,
                                            std::int64_t created_unix_s);

/// The JSON form of logprobs in chats and responses.
nlohmann::json logprobs_json(std::span<const TokenLogprobs> tokens);

/// The JSON on one line, with invalid UTF-8 replaced.
std::string line_of(const nlohmann::json& json);

/// "stop" or "length" for a CompletionReason.
std::string_view finish_reason(std::string_view completion_reason);

}  // namespace leasehold::http
