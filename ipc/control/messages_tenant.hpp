/// Tenant ↔ worker: requests and their tokens. The rules for all messages:
/// ipc/control/messages.hpp.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.hpp"
#include "ipc/control/messages_common.hpp"

namespace leasehold::wire {

/// On the wire a text, or a list of texts.
struct StringList {
  std::vector<std::string> all;
  bool operator==(const StringList&) const = default;
};

/// On the wire an object: token ids, written as text, and what is added to their logits.
struct TokenBiases {
  std::map<std::int32_t, float> by_token;
  bool operator==(const TokenBiases&) const = default;
};

/// On the wire {"type": "text" | "json_object" | "json_schema"}, the last with
/// {"json_schema": {"schema": …}}: an object, or that object written as text. Members keep their
/// order either way, as far as a line arrives through a Peer: a Json object has none.
struct ResponseFormat {
  std::string type = "text";
  std::string schema;  ///< JSON.
  bool operator==(const ResponseFormat&) const = default;
};

/// Names and meanings are those of OpenAI's API where it has one. Every field but the first two may
/// be missing. Ranges are the worker's to check (worker/text/sampling/params.hpp).
struct Sampling {
  float temperature = 0.0f;  ///< 0 is greedy; 0 … 100, finite.
  std::uint64_t seed = 0;
  std::uint32_t top_k = 0;  ///< 0: all.
  float top_p = 1.0f;
  float min_p = 0.0f;
  float typical_p = 1.0f;
  float repetition_penalty = 1.0f;
  float presence_penalty = 0.0f;
  float frequency_penalty = 0.0f;
  std::uint32_t penalty_window = 0;  ///< 0: all tokens.
  TokenBiases logit_bias;
  bool logprobs = false;
  std::uint32_t top_logprobs = 0;  ///< With `logprobs` only.
  StringList stop;
  std::vector<std::int32_t> stop_token_ids;
  ResponseFormat response_format;
  std::string grammar;  ///< GBNF; not with a response_format.
  Json to_json() const;
  static Result<Sampling> from_json(const Json& json);
};

/// One turn of a conversation.
struct ChatMessage {
  std::string role;  ///< "system", "user", "assistant", or what else the model's template knows.
  std::string content;
};

/// `generate`: the prompt as text, as tokens, or as messages that the model's chat template makes
/// into one: exactly one of the three. Reply: Generating; then notifications
/// `token.emitted` (TokenEmitted) and, once, `request.completed` (RequestCompleted).
struct Generate {
  static constexpr std::string_view kMethod = "request.submit";
  std::string token;  ///< From LeaseAcquired.
  RequestId request_id;
  std::optional<std::string> prompt;
  std::optional<std::vector<std::int32_t>> prompt_tokens;
  std::optional<std::vector<ChatMessage>> messages;
  /// The time the template is told; missing: the worker's clock. Who submits a request again
  /// sends the same, or the prompt may change at midnight.
  std::optional<std::int64_t> asked_at_unix_s;
  std::vector<std::int32_t> emitted;    ///< Rebind: tokens already delivered for this request.
  std::optional<LeaseId> rebound_from;  ///< Rebind: the lease they were delivered under.
  Sampling sampling;
  std::uint32_t max_emitted_tokens = 128;  ///< Counts `emitted` too; 1 … 2^20.
  bool ignore_eos = false;
  std::optional<std::int64_t> deadline_ms;  ///< From now.
  Json to_json() const;
  static Result<Generate> from_json(const Json& json);
};

struct Generating {
  RequestId request;
  std::uint32_t prompt_tokens = 0;
  Json to_json() const;
  static Result<Generating> from_json(const Json& json);
};

struct TokenLogprob {
  std::int32_t token = 0;
  float logprob = 0.0f;
  bool operator==(const TokenLogprob&) const = default;
};

struct TokenEmitted {
  static constexpr std::string_view kMethod = "token.emitted";
  RequestId request;
  std::int32_t token = 0;
  std::uint32_t position = 0;              ///< 0 is the first emitted token of the request.
  std::string text;                        ///< Whole UTF-8 characters; may be empty.
  std::optional<float> logprob;            ///< When asked for, as the next.
  std::vector<TokenLogprob> top_logprobs;  ///< Most likely first.
  Json to_json() const;
  static Result<TokenEmitted> from_json(const Json& json);
};

struct RequestCompleted {
  static constexpr std::string_view kMethod = "request.completed";
  RequestId request;
  std::string reason;  ///< worker/schedule/events.hpp, e.g. "Revoked".
  std::uint32_t emitted_tokens = 0;
  std::optional<LeaseId> lease;  ///< With Revoked and LeaseFenced.
  std::string scope;             ///< "tenant" or "engine", with Revoked.
  std::string revoke_reason;     ///< "operator" …, with Revoked.
  std::string detail;
  std::string text;  ///< What was held back of the text until nothing could follow.
  Json to_json() const;
  static Result<RequestCompleted> from_json(const Json& json);
};

/// `request.cancel`: ends one request of this connection. Reply: Empty; `request.completed`
/// follows.
struct RequestCancel {
  static constexpr std::string_view kMethod = "request.cancel";
  RequestId request_id;
  Json to_json() const;
  static Result<RequestCancel> from_json(const Json& json);
};

}  // namespace leasehold::wire
