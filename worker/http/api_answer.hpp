/// Writes the answers of `/v1/completions` and `/v1/chat/completions`: one object, or the chunks of
/// a stream. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "worker/http/api_request.hpp"
#include "worker/text/chat/tool_calls.hpp"

namespace leasehold::http {

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

class AnswerWriter {
 public:
  AnswerWriter(const ApiRequest& request, std::string model, std::int64_t created_unix_s);

  /// The answer to a request that does not stream.
  std::string whole(std::span<const ChoicePart> choices, UsageCount usage) const;

  // Chunks, each one line of JSON.
  /// The role, before the first text of a choice of a chat; nothing for a completion.
  std::optional<std::string> opening(std::uint32_t index) const;
  std::string chunk(const ChoicePart& part, UsageCount so_far) const;
  /// A chunk of it would tell the client nothing.
  bool is_nothing(const ChoicePart& part) const;
  /// Nothing unless the request asked for it.
  std::optional<std::string> usage(UsageCount usage) const;

 private:
  nlohmann::json logprobs(const ChoicePart& part) const;
  nlohmann::json object(std::string_view name, nlohmann::json choices) const;

  bool is_chat_;
  bool has_logprobs_;
  bool include_usage_;
  bool continuous_usage_;
  std::string id_;
  std::string model_;
  std::int64_t created_;
};

/// "stop" or "length" for a CompletionReason.
std::string_view finish_reason(std::string_view completion_reason);

}  // namespace leasehold::http
