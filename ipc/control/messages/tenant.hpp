/// Tenant ↔ worker: requests and their tokens. The rules for all messages are in
/// ipc/control/messages.hpp.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.hpp"
#include "ipc/control/messages/common.hpp"

namespace leasehold::wire {

/// Written in JSON as a string or an array of strings.
struct StringList {
  std::vector<std::string> all;
  bool operator==(const StringList&) const = default;
};

/// Written in JSON as an object. The keys are token ids as text; each value is added to the token's
/// logit.
struct TokenBiases {
  std::map<std::int32_t, float> by_token;
  bool operator==(const TokenBiases&) const = default;
};

/// Written in JSON as {"type": "text" | "json_object" | "json_schema"}. A "json_schema" also has
/// {"json_schema": {"schema": …, "strict": false}}: the schema as an object, or as text that
/// contains one. A line that arrives through a Peer keeps the order of the schema's members in both
/// forms.
struct ResponseFormat {
  std::string type = "text";
  std::string schema;  ///< JSON.
  /// True: refuse a schema with rules that the grammar cannot enforce. False: ignore those rules
  /// and list them in RequestSubmitted. May be missing or null; only with a schema.
  bool strict = true;
  bool operator==(const ResponseFormat&) const = default;
};

/// Names and meanings follow OpenAI's API for the fields that it has. All fields except
/// `temperature` and `seed` may be missing. The worker checks the other ranges
/// (worker/text/sampling/params.hpp).
struct Sampling : Message<Sampling> {
  float temperature = 0.0f;  ///< 0 … 100; 0 means greedy.
  std::uint64_t seed = 0;
  std::uint32_t top_k = 0;  ///< 0 means all.
  float top_p = 1.0f;
  float min_p = 0.0f;
  float typical_p = 1.0f;
  float repetition_penalty = 1.0f;
  float presence_penalty = 0.0f;
  float frequency_penalty = 0.0f;
  /// Number of recent tokens that penalties consider; 0 means all.
  std::uint32_t penalty_window = 0;
  TokenBiases logit_bias;
  bool logprobs = false;
  std::uint32_t top_logprobs = 0;  ///< Valid only with `logprobs`.
  StringList stop;
  bool include_stop_str_in_output = false;  ///< The text includes the stop string.
  std::vector<std::int32_t> stop_token_ids;
  /// Number of tokens before which neither an end token nor a stop string or stop token ends the
  /// text. At most `max_emitted_tokens`.
  std::uint32_t min_tokens = 0;
  /// At most one of these three: a format, a grammar in GBNF, and a regular expression that the
  /// whole text matches (worker/text/grammar/schema/schema_pattern.hpp).
  ResponseFormat response_format;
  std::string grammar;
  std::string regex;
};

/// `connection.authenticate`: the first call on a connection to a worker. From then on the
/// connection belongs to the tenant of the token, and may send long lines. Reply: Empty. The client
/// may send further calls before the reply. Errors, after which the worker closes the connection:
/// BadToken, QueueFull, and LeaseRevoked or LeaseFenced for the token of an ended lease.
struct ConnectionAuthenticate : Message<ConnectionAuthenticate> {
  static constexpr std::string_view kMethod = "connection.authenticate";
  std::string token;  ///< From LeaseAcquired.
};

/// One turn of a conversation. The texts after `content` may be missing.
struct ChatMessage {
  std::string role;  ///< "system", "developer", "user", "assistant", "tool" or "function".
  std::optional<std::string> content;  ///< Missing in a turn that only calls tools.
  std::string tool_calls;              ///< JSON: an array, as in OpenAI's API.
  std::string tool_call_id;            ///< The id of the call whose result this turn is.
  std::string name;                    ///< Name of the tool or of the speaker.
  std::string reasoning_content;       ///< The model's reasoning before its answer.
};

/// Asks for the embedding of a prompt instead of a text: its final hidden states, pooled to one
/// vector of Euclidean length 1.
struct Embedding {
  /// "last" or "mean"; empty or missing: as the model's file says, else "last".
  std::string pooling;
  /// Leading elements of the vector to keep; 0 or missing: all. Fewer than all only if the worker
  /// was started with --matryoshka.
  std::uint32_t dimensions = 0;
  bool operator==(const Embedding&) const = default;
};

/// `request.submit`: exactly one of `prompt` (text), `prompt_tokens`, and `messages`, which the
/// model's chat template turns into a prompt. Reply: RequestSubmitted; then notifications
/// `prompt.logprobs` (PromptLogprobs), `token.emitted` (TokenEmitted), `request.preempted`
/// (RequestPreempted) and, once, `request.completed` (RequestCompleted).
struct RequestSubmit : Message<RequestSubmit> {
  static constexpr std::string_view kMethod = "request.submit";
  static constexpr std::int32_t kMaxPriority = 10;
  /// The most values that `prompt_logprobs` may ask for: prompt tokens · (1 + alternatives).
  static constexpr std::size_t kMaxPromptLogprobs = 1u << 17;
  std::string token;  ///< From LeaseAcquired; must belong to the connection's tenant.
  RequestId request_id;
  std::optional<std::string> prompt;
  /// True: the names of control tokens in `prompt` become control tokens. False: they are plain
  /// text, as in the messages of a chat. May be missing.
  bool parse_special = false;
  std::optional<std::vector<std::int32_t>> prompt_tokens;
  std::optional<std::vector<ChatMessage>> messages;
  /// JSON array of tools for the chat template; with messages only. May be missing.
  std::string tools;
  /// JSON object of further variables for the chat template; with messages only. May be missing.
  std::string chat_template_kwargs;
  /// With messages only. True: the prompt ends with the start of the model's turn. False: it ends
  /// with the last message. May be missing.
  bool add_generation_prompt = true;
  /// With messages only. True: the prompt ends with the content of the last message, and the text
  /// continues it. Not together with `add_generation_prompt`. May be missing.
  bool continue_final_message = false;
  /// The current time as the chat template sees it; empty means the worker's clock. A client that
  /// submits a request again sends the same time, or the prompt may change at midnight.
  std::optional<std::int64_t> asked_at_unix_s;
  std::vector<std::int32_t> emitted;  ///< For a rebind: tokens already delivered for this request.
  std::optional<LeaseId> rebound_from;  ///< For a rebind: the lease that delivered them.
  Sampling sampling;
  /// 0 … 2^20; includes `emitted`. 0: only the prompt is computed.
  std::uint32_t max_emitted_tokens = 128;
  /// True: the worker lowers `max_emitted_tokens` to what fits after the prompt into the context,
  /// the tenant's max_blocks and its tokens per minute. May be missing.
  bool may_shorten = false;
  /// 0 … 20: the log probability of each prompt token is sent (PromptLogprobs), with this number of
  /// alternatives. At most kMaxPromptLogprobs values; not together with `resumable`. May be
  /// missing.
  std::optional<std::uint32_t> prompt_logprobs;
  /// For a rebind: leading prompt positions whose PromptLogprobs arrived. May be missing.
  std::uint32_t received_prompt_positions = 0;
  /// No token is emitted, and RequestCompleted has the vector. `max_emitted_tokens` is 0. Not
  /// together with `emitted`, `prompt_logprobs` or `resumable`. If the tokenizer adds an end token
  /// to texts, a `prompt` ends with it. May be missing.
  std::optional<Embedding> embedding;
  bool ignore_eos = false;
  std::optional<std::int64_t> deadline_ms;  ///< Counted from the arrival of the request.
  /// -kMaxPriority … kMaxPriority. Of a tenant's requests on one worker, those of higher priority
  /// run first and those of lower priority are preempted first. May be missing.
  std::int32_t priority = 0;
  /// The request outlives its connection for a while (worker/serve/resumable_streams.hpp). A
  /// repeated submission that is equal except for `token`, `emitted`, `rebound_from`,
  /// `asked_at_unix_s`, `x_request_id`, `traceparent` (and `max_emitted_tokens` with `may_shorten`)
  /// generates no token twice: it continues the stream after `emitted`. May be missing.
  bool resumable = false;
  /// The name of the HTTP exchange that submits the request, for logs only. May be missing.
  std::string x_request_id;
  /// The trace that the request belongs to, and the span that submits it
  /// (common/trace_context.hpp). May be missing.
  std::string traceparent;
  /// The name of an adapter that the tenant may use; empty or missing: the base model.
  std::string adapter;
  /// RequestSubmitted::adapter_digest of the version that computed `emitted`; missing: not known,
  /// so it is not compared. The text does not go on under another version (UnknownAdapter).
  std::string adapter_digest;
};

/// True for a value of X-Request-Id that is passed on: 1 to 128 visible ASCII characters.
bool is_x_request_id(std::string_view text);

struct RequestSubmitted : Message<RequestSubmitted> {
  static constexpr std::size_t kMaxUnchecked = 32;
  RequestId request;
  std::uint32_t prompt_tokens = 0;
  /// Rules of the schema that the worker does not check: "#/properties/a: 'not'". May be missing.
  std::vector<std::string> unchecked;
  /// Number of such rules that `unchecked` omits. May be missing.
  std::uint32_t unchecked_omitted = 0;
  /// With `may_shorten`: the limit that applies. 0 or missing: the requested one.
  std::uint32_t max_emitted_tokens = 0;
  std::string adapter_digest;  ///< Of the version that the request uses; missing without adapter.
};

struct TokenLogprob {
  std::int32_t token = 0;
  float logprob = 0.0f;
  bool operator==(const TokenLogprob&) const = default;
};

struct TokenEmitted : Message<TokenEmitted> {
  static constexpr std::string_view kMethod = "token.emitted";
  RequestId request;
  std::int32_t token = 0;
  std::uint32_t position = 0;              ///< 0 for the first emitted token of the request.
  std::string text;                        ///< Whole UTF-8 characters; may be empty.
  std::optional<float> logprob;            ///< This field and top_logprobs: only if requested.
  std::vector<TokenLogprob> top_logprobs;  ///< Most likely first.
};

/// A token of the prompt. The first one has no logprob.
struct PromptToken {
  std::int32_t token = 0;
  std::optional<float> logprob;
  std::vector<TokenLogprob> top_logprobs;  ///< Most likely first.
  bool operator==(const PromptToken&) const = default;
};

/// The next prompt tokens of a request with `prompt_logprobs`. Each position is sent once, in order
/// and before the first token. The client must read: while its connection has more than 64 KiB of
/// unread output, the prompt is not computed further, and after 10 s the request ends with
/// QueueFull.
struct PromptLogprobs : Message<PromptLogprobs> {
  static constexpr std::string_view kMethod = "prompt.logprobs";
  RequestId request;
  /// Position of the first of `tokens`; 0 for the first token of the prompt.
  std::uint32_t position = 0;
  std::vector<PromptToken> tokens;
};

/// The request lost its blocks and waits; its next token will have the position `emitted_tokens`. A
/// client may ignore the notification. Not sent for a resumable request.
struct RequestPreempted : Message<RequestPreempted> {
  static constexpr std::string_view kMethod = "request.preempted";
  RequestId request;
  std::string cause;  ///< "PoolExhausted" (the broker lends no more) or "QuotaBlocks".
  std::uint32_t freed_blocks = 0;
  std::uint32_t swapped_blocks = 0;  ///< Blocks copied to swap; 0: their KV is computed again.
  std::uint32_t emitted_tokens = 0;
};

struct RequestCompleted : Message<RequestCompleted> {
  static constexpr std::string_view kMethod = "request.completed";
  RequestId request;
  std::string reason;  ///< worker/schedule/events.hpp, e.g. "Revoked".
  std::uint32_t emitted_tokens = 0;
  /// The lease that ended or refused the request. Present with reason Revoked or LeaseFenced, and
  /// when a waiting request is refused.
  std::optional<LeaseId> lease;
  /// "tenant", "engine" or "shared" (FailureScope); empty without a failure. With "shared", `lease`
  /// is the lease of a published text, and the request's own lease is still live.
  std::string scope;
  std::string revoke_reason;  ///< "operator" …; only with reason Revoked.
  std::string detail;
  std::string text;  ///< Text that was withheld until no token could change it.
  /// When a waiting request is refused: a retry before this time has passed fails. 0 or missing:
  /// not known, or waiting does not help.
  std::int64_t retry_after_ms = 0;
  /// Number of the prompt's tokens whose KV the prefix cache held when this submission was first
  /// admitted. Tokens computed again after a preemption do not change it. Missing if the submission
  /// was never admitted or had `emitted` tokens: of the submissions of one request, the first that
  /// has the number counts.
  std::optional<std::uint32_t> cached_tokens;
  /// The vector of a request with RequestSubmit::embedding that was not interrupted: its floats in
  /// little-endian order, as base64 (RFC 4648, with padding). Otherwise empty or missing.
  std::string embedding;
};

/// `request.resume`: continues the stream of a resumable request on this connection, which may be
/// another process than before. Sends every position after `after_position` once. The request must
/// belong to the connection's tenant. Reply: RequestSubmitted, as for the submission. Errors:
/// UnknownRequest, also for a request of another tenant; BadRequest for a position that is not
/// generated yet; LeaseRevoked, LeaseFenced when the newest lease of the connection has ended,
/// unless the text was interrupted with it.
struct RequestResume : Message<RequestResume> {
  static constexpr std::string_view kMethod = "request.resume";
  RequestId request_id;
  std::optional<std::uint32_t> after_position;  ///< Missing: from the first position on.
};

/// `request.move`: moves a running request of this connection to another live lease of its tenant
/// on this worker, which `lease.replace` granted. Its KV blocks are copied between two steps; no
/// token is lost, repeated or computed again. After an error the request continues under its old
/// lease. Reply: RequestMoved. Errors: UnknownRequest, BadToken (also for a token of another
/// tenant), BadRequest (the same lease), LeaseRevoked, LeaseFenced, Draining (the new lease
/// drains), QuotaBlocks. Errors to retry: QueueFull (the request waits, or a copy ran just before),
/// PoolExhausted (the worker asks for more extents of the new lease).
struct RequestMove : Message<RequestMove> {
  static constexpr std::string_view kMethod = "request.move";
  RequestId request_id;
  std::string token;  ///< The new lease's token.
};

struct RequestMoved : Message<RequestMoved> {
  RequestId request;
  LeaseId lease;
  std::uint32_t blocks = 0;  ///< Blocks that were copied.
};

/// `request.cancel`: cancels one request of this connection. Reply: Empty; `request.completed`
/// follows.
struct RequestCancel : Message<RequestCancel> {
  static constexpr std::string_view kMethod = "request.cancel";
  RequestId request_id;
};

}  // namespace leasehold::wire
