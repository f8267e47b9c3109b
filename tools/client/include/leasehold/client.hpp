/// libleasehold-client: generates text under revocable leases of a Leasehold broker.
///
///     auto session = leasehold::api::Session::connect({"alice"});
///     auto stream = session->generate({"Once upon a time"});
///     while (auto token = stream->next()) std::cout << token->text;
///     if (auto completed = stream->result(); !completed) std::cerr << completed.error().detail;
///
/// A session holds one lease, renews it in a thread of its own, and runs one text at a time. When
/// the lease is revoked, its worker dies or a connection breaks, the text continues where it
/// stopped, under a new lease: every position is delivered once.
///
/// Needs C++17 and only the standard library. Broker and worker run on the same machine; the
/// library connects to their Unix sockets. This interface does not include the wire protocol.
///
/// Errors: values of `Error`. The only exceptions are std::bad_alloc and std::system_error (no
/// thread). Units: a duration has its type; a block is 16 positions; a position counts tokens from
/// 0. Stability: while the version is 0.x, each minor version has its own soname.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace leasehold::api {

/// What failed, and what to do next. `brokerctl explain CODE` says more.
struct Error {
  std::string code;    ///< A name of the closed list: "LeaseRevoked", "QuotaBlocks" …
  std::string detail;  ///< A sentence with the values.
  std::string next;    ///< What a user can try.
  /// Which tenants the error concerns: "tenant", "engine" (every tenant) or "shared".
  std::string scope;
  bool retryable = false;                    ///< The same call may succeed later, unchanged.
  std::chrono::milliseconds retry_after{0};  ///< A retry before this time fails; 0: not known.
};

/// A value or an Error. Threads: as T.
template <class T>
class Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return state_.index() == 0; }
  /// The value. Precondition: there is one, otherwise std::bad_variant_access.
  T& operator*() { return std::get<0>(state_); }
  const T& operator*() const { return std::get<0>(state_); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }
  /// The error. Precondition: there is no value, otherwise std::bad_variant_access.
  const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

struct SessionOptions {
  std::string tenant;  ///< Must be admitted at the broker (`brokerctl tenants admit`).
  /// The broker's socket; empty: $LEASEHOLD_BROKER, else $XDG_RUNTIME_DIR/leasehold/broker.sock,
  /// else /run/leasehold/broker.sock.
  std::string broker{};
  std::string worker{};  ///< Name of the worker; empty: any that is ready.
  /// From `brokerctl keys create`; empty: the tenant must permit this process's user.
  std::string api_key{};
  std::uint32_t blocks = 0;  ///< KV blocks of a lease; 0: the blocks of one extent.
  bool rebind = true;        ///< False: the first error ends a text.
  /// How long a text that has begun may wait for its next lease when memory is short.
  std::chrono::milliseconds rebind_timeout = std::chrono::minutes(10);
  /// Lets a text continue on a worker with another arithmetic, whose tokens may differ.
  bool any_arithmetic = false;
  /// The model for new texts: the name that a worker gives its model, or "sha256:" and at least 8
  /// digits of the model's content. Empty: the model that every ready worker serves.
  std::string model{};
};

struct Lease {
  std::string id;      ///< As `brokerctl leases` prints it: "17.4". An id is never reused.
  std::string worker;  ///< Name of the worker that the lease is on.
  std::uint32_t blocks = 0;
  std::chrono::milliseconds ttl{0};  ///< The session renews the lease every third of this time.
  /// What tokens of this lease depend on: content of the model, arithmetic, KV cache, version.
  /// Store it with the tokens of a text that another process may resume(). Empty for a worker of an
  /// earlier version.
  std::string text_identity{};
};

/// One turn of a conversation.
struct Message {
  std::string role;          ///< "system", "user", "assistant", "tool" …
  std::string content;       ///< May be empty in a turn that calls tools.
  std::string tool_calls{};  ///< JSON: the calls of an assistant's turn, as in OpenAI's API.
  /// In a tool's turn: the id of the call whose result the turn is.
  std::string tool_call_id{};
  std::string name{};               ///< Name of the tool or of the speaker.
  std::string reasoning_content{};  ///< The model's reasoning before the content.
};

/// One text. Exactly one of `prompt`, `prompt_tokens` and `messages` is not empty. At most one of
/// `json_object`, `json_schema` and `grammar` is set; it decides the form of the answer. The worker
/// checks the ranges, and refuses a request with BadRequest and the name of the field.
struct Request {
  std::string prompt;
  std::vector<std::int32_t> prompt_tokens{};  ///< Ids of the model's vocabulary.
  std::vector<Message> messages{};            ///< For the model's chat template.
  /// JSON array of tools, as in OpenAI's API, for the chat template; with `messages` only. The
  /// model calls a tool within its text, in the form that it was trained to write.
  std::string tools{};
  /// JSON object of further variables for the chat template; with `messages` only.
  std::string chat_template_kwargs{};
  std::uint32_t max_tokens = 128;  ///< 1 … 2^20.
  float temperature = 0.0F;        ///< 0 … 100; 0: greedy.
  std::uint64_t seed = 0;          ///< The same seed, prompt and model give the same text.
  std::uint32_t top_k = 0;         ///< 0: all.
  float top_p = 1.0F;
  float min_p = 0.0F;
  float typical_p = 1.0F;
  float repetition_penalty = 1.0F;
  float presence_penalty = 0.0F;
  float frequency_penalty = 0.0F;
  std::uint32_t penalty_window = 0;            ///< Recent tokens that penalties consider; 0: all.
  std::map<std::int32_t, float> logit_bias{};  ///< Token id and the value to add to its logit.
  bool logprobs = false;                       ///< Deliver the log probability of each token.
  /// Number of most likely tokens to deliver at each position; with `logprobs`.
  std::uint32_t top_logprobs = 0;
  std::vector<std::string> stop{};  ///< Texts that end the answer; they are not delivered.
  std::vector<std::int32_t> stop_token_ids{};  ///< Tokens that end the answer.
  bool json_object = false;                    ///< The answer is a JSON object.
  std::string json_schema{};  ///< Text of a JSON schema that the answer must match.
  /// True: refuse a schema with rules that the grammar cannot enforce. False: Completed::unchecked
  /// lists those rules.
  bool strict_schema = true;
  std::string grammar{};                  ///< GBNF grammar that the answer must match.
  bool ignore_eos = false;                ///< Continue to `max_tokens` after the end of sequence.
  int priority = 0;                       ///< -10 … 10, among the tenant's own requests.
  std::chrono::milliseconds deadline{0};  ///< Counted from the arrival at the worker; 0: none.
  /// The worker keeps the text for a minute without this process; resume() continues it.
  bool resumable = false;
  /// 1 to 64 characters of [A-Za-z0-9._:-]; empty: a new one. Required for a resumable request.
  std::string request_id{};
  /// For resume(): Lease::text_identity of the lease under which the tokens were delivered. The
  /// text then continues only under a lease with an equal identity. Empty: not known, so the model
  /// is not compared.
  std::string text_identity{};
  std::string adapter{};  ///< The name of an adapter that the tenant may use; empty: none.
};

/// One text to embed. Exactly one of `prompt` and `prompt_tokens` is not empty.
struct EmbeddingRequest {
  std::string prompt;
  std::vector<std::int32_t> prompt_tokens{};  ///< Ids of the model's vocabulary.
  bool parse_special = false;                 ///< Names of control tokens in `prompt` are tokens.
  std::string pooling{};  ///< "last" or "mean"; empty: as the model's file says, else "last".
  std::uint32_t dimensions = 0;           ///< First elements to keep; 0: all. Needs `--matryoshka`.
  int priority = 0;                       ///< -10 … 10, among the tenant's own requests.
  std::chrono::milliseconds deadline{0};  ///< Counted from the arrival at the worker; 0: none.
  std::string request_id{};               ///< 1 to 64 characters of [A-Za-z0-9._:-]; empty: new.
};

/// A candidate token at a position, with its natural log probability.
struct TokenLogprob {
  std::int32_t id = 0;
  float logprob = 0.0F;
};

struct Token {
  std::uint32_t position = 0;                ///< 0 for the first token of the answer.
  std::int32_t id = 0;                       ///< Id in the model's vocabulary.
  std::string text;                          ///< Whole UTF-8 characters; may be empty.
  std::optional<float> logprob{};            ///< This field and top_logprobs: only if requested.
  std::vector<TokenLogprob> top_logprobs{};  ///< Most likely first.
};

struct Completed {
  /// "EndOfSequence", "MaxTokensReached", "StopSequence", "Cancelled", or "ContextFull": the text
  /// has fewer than `max_tokens` tokens, because the model's context is full.
  std::string reason;
  /// Text after that of the last token, which the worker withheld until no later token could change
  /// it.
  std::string text;
  std::string note;          ///< A remark for the user, for example that the context is full.
  std::uint32_t tokens = 0;  ///< Number of positions delivered, including those before a resume.
  std::uint32_t prompt_tokens = 0;
  std::vector<std::string> leases{};  ///< Ids of the leases that the text ran under, in order.
  /// Rules of the schema that the worker did not check: "#/properties/a: 'not'". At most 32.
  std::vector<std::string> unchecked{};
};

class SessionCore;
class Text;

/// One text that is being generated. Move-only.
///
/// Ownership: the caller's; destroying it cancels the text. A stream may outlive its session, which
/// cancels the text. Threads: any thread may call cancel(), one at a time everything else.
class [[gnu::visibility("default")]] Stream {
 public:
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;
  ~Stream();

  /// Waits for the next position. Returns nothing at the end; result() then says how the text
  /// ended. Keeps unread positions, at most `max_tokens`.
  std::optional<Token> next();

  /// Waits for the end, drops unread positions, and returns how the text ended. May be repeated.
  /// Errors: LeaseRevoked and LeaseFenced without `rebind`; the broker's refusal of a lease
  /// (UnknownTenant, QuotaBlocks, PoolExhausted …); the worker's refusal of the request
  /// (BadRequest, PromptTooLong, QuotaTokens …); a temporary error, after nine in a row without a
  /// token.
  Result<Completed> result();

  /// Ends the text without waiting; result() then has the reason "Cancelled", unless the text ended
  /// before.
  void cancel();

  /// The request's id: the given one or a new one.
  const std::string& request_id() const;

 private:
  friend class Session;
  Stream(std::shared_ptr<SessionCore> core, std::shared_ptr<Text> text);
  std::shared_ptr<SessionCore> core_;
  std::shared_ptr<Text> text_;
};

/// A tenant's connection to a broker, with at most one lease. Move-only.
///
/// Ownership: the caller's; destroying it cancels its text and releases its lease, which takes at
/// most two seconds if the broker does not answer, and two more if the worker does not answer
/// either. Threads: one at a time; several sessions of a process are independent. Do not use a
/// session in the child after fork().
class [[gnu::visibility("default")]] Session {
 public:
  /// Connects and checks that a broker listens; acquires no lease yet. Errors: BadRequest for an
  /// invalid name or path; FileNotFound, ConnectionRefused, PermissionDenied.
  static Result<Session> connect(SessionOptions options);

  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  /// Returns the lease that is held, or acquires one in a single call without retries. generate()
  /// acquires a lease by itself. Errors: the broker's refusal (UnknownTenant, QuotaBlocks,
  /// PoolExhausted, NoModelLoaded, Draining …); ConnectionLost; TimedOut after 30 seconds;
  /// BadRequest while a text runs.
  Result<Lease> acquire();

  /// The lease that is held; nothing before the first lease, and after the broker has ended it.
  std::optional<Lease> lease() const;

  /// Begins a text under the lease that is held, otherwise under a new one, and returns at once.
  /// The session keeps the lease for the next text. Errors: BadRequest for an invalid request, or
  /// while another text of this session runs; Stream::result() returns all other errors.
  Result<Stream> generate(Request request);

  /// Continues a resumable text of an earlier process: the same request with the same request_id.
  /// `delivered`: ids of the tokens that arrived at that process, in order; the stream begins after
  /// them. If the worker no longer has the text, it computes the text again up to there and
  /// continues. Errors: as generate().
  Result<Stream> resume(Request request, std::vector<std::int32_t> delivered);

  /// Computes the embedding of a text under the lease that is held, otherwise under a new one, and
  /// waits for it. Its Euclidean length is 1, and its bits do not depend on other requests or on a
  /// revocation. Errors: as generate() and Stream::result(); BadRequest for a model whose file asks
  /// for a pooling that this version does not compute.
  Result<std::vector<float>> embed(EmbeddingRequest request);

  /// Releases the lease. Cancels a running text.
  void release();

 private:
  explicit Session(std::shared_ptr<SessionCore> core);
  Result<Stream> begin(Request request, std::vector<std::int32_t> delivered);
  std::shared_ptr<SessionCore> core_;
};

}  // namespace leasehold::api
