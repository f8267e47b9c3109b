/// libleasehold-client: generates text under revocable leases of a Leasehold broker.
///
///     auto session = leasehold::api::Session::connect({"alice"});
///     auto stream = session->generate({"Once upon a time"});
///     while (auto token = stream->next()) std::cout << token->text;
///     if (auto completed = stream->result(); !completed) std::cerr << completed.error().detail;
///
/// A session holds one lease, renews it in a thread of its own, and runs one text at a time. When
/// the lease is revoked, its worker dies or a connection breaks, the text goes on where it stopped,
/// on a new lease: every position is delivered once.
///
/// Needs C++17 and nothing but the standard library. Everything is on this machine: broker and
/// worker are reached over their Unix sockets. This interface does not include the wire protocol.
///
/// Errors: values of `Error`; nothing throws but std::bad_alloc and std::system_error (no thread).
/// Units: a duration has its type; a block is 16 positions; a position counts tokens from 0.
/// Stability: while the version is 0.x, each minor version has its own soname.
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
  std::string scope;  ///< Which tenants it concerns: "tenant", "engine" (every tenant) or "shared".
  bool retryable = false;                    ///< The same call may succeed later, unchanged.
  std::chrono::milliseconds retry_after{0};  ///< No earlier; 0: not known.
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
  std::string tenant;  ///< Admitted at the broker (`brokerctl tenants admit`).
  /// The broker's socket; empty: $LEASEHOLD_BROKER, else $XDG_RUNTIME_DIR/leasehold/broker.sock,
  /// else /run/leasehold/broker.sock.
  std::string broker{};
  std::string worker{};      ///< Name of the worker; empty: any that is ready.
  std::string api_key{};     ///< Of `brokerctl keys create`; empty: this process's user counts.
  std::uint32_t blocks = 0;  ///< KV blocks of a lease; 0: one extent's worth.
  bool rebind = true;        ///< False: the first error ends a text.
  /// How long a text that has begun waits in turn for its next lease when memory is short.
  std::chrono::milliseconds rebind_timeout = std::chrono::minutes(10);
  /// Continue a text also on a worker of another arithmetic, whose tokens may differ.
  bool any_arithmetic = false;
  /// What new texts are generated with: the name that a worker gives its model, or "sha256:" and at
  /// least 8 digits of its content. Empty: what every ready worker serves.
  std::string model{};
};

struct Lease {
  std::string id;      ///< As `brokerctl leases` prints it: "17.4". Never used twice.
  std::string worker;  ///< Name of the worker whose memory it is.
  std::uint32_t blocks = 0;
  std::chrono::milliseconds ttl{0};  ///< The session renews it at a third of this.
  /// What tokens depend on there: content of the model, arithmetic, KV cache, version. Keep it with
  /// the tokens of a text that another process may resume(). Empty: an earlier worker's.
  std::string text_identity{};
};

/// One turn of a conversation.
struct Message {
  std::string role;          ///< "system", "user", "assistant", "tool" …
  std::string content;       ///< May be empty in a turn that calls tools.
  std::string tool_calls{};  ///< JSON: the calls of an assistant's turn, as OpenAI's API has them.
  std::string tool_call_id{};       ///< Of a tool's turn: the call whose result it is.
  std::string name{};               ///< Of the tool, or of the speaker.
  std::string reasoning_content{};  ///< What the model thought before the content.
};

/// One text. Exactly one of `prompt`, `prompt_tokens` and `messages` is not empty. At most one of
/// `json_object`, `json_schema` and `grammar` is set; it decides the form of the answer. The worker
/// checks the ranges, and refuses a request with BadRequest and the name of the field.
struct Request {
  std::string prompt;
  std::vector<std::int32_t> prompt_tokens{};  ///< Ids of the model's vocabulary.
  std::vector<Message> messages{};            ///< For the model's chat template.
  /// JSON: an array of tools as OpenAI's API has it, for the template; with `messages` only. The
  /// model calls one in its text, in the form that it was trained to write.
  std::string tools{};
  /// JSON: an object of further variables of the template; with `messages` only.
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
  std::map<std::int32_t, float> logit_bias{};  ///< By token id; added to its logit.
  bool logprobs = false;                       ///< Each token says how likely it was.
  std::uint32_t top_logprobs = 0;   ///< Number of likeliest tokens to name; with `logprobs`.
  std::vector<std::string> stop{};  ///< Texts that end the answer; not delivered.
  std::vector<std::int32_t> stop_token_ids{};  ///< Tokens that end the answer.
  bool json_object = false;                    ///< The answer is a JSON object.
  std::string json_schema{};  ///< Text of a JSON schema that the answer is valid under.
  /// Refuse a schema that no grammar can promise. False: Completed::unchecked lists what is not.
  bool strict_schema = true;
  std::string grammar{};                  ///< GBNF that the answer matches.
  bool ignore_eos = false;                ///< Continue to `max_tokens` after the end of sequence.
  int priority = 0;                       ///< -10 … 10, among the tenant's own requests.
  std::chrono::milliseconds deadline{0};  ///< From the arrival at the worker; 0: none.
  /// The worker keeps the text for a minute without this process; resume() continues it.
  bool resumable = false;
  /// 1 to 64 characters of [A-Za-z0-9._:-]; empty: a new one. Needed for a resumable request.
  std::string request_id{};
  /// For resume(): Lease::text_identity of the lease that the delivered tokens came under. The text
  /// then continues under no other one. Empty: not known, so the model is not compared.
  std::string text_identity{};
};

/// A token that was possible at a position. The logarithm is natural.
struct TokenLogprob {
  std::int32_t id = 0;
  float logprob = 0.0F;
};

struct Token {
  std::uint32_t position = 0;                ///< 0 for the first token of the answer.
  std::int32_t id = 0;                       ///< Of the model's vocabulary.
  std::string text;                          ///< Whole UTF-8 characters; may be empty.
  std::optional<float> logprob{};            ///< Only when requested, as top_logprobs.
  std::vector<TokenLogprob> top_logprobs{};  ///< Most likely first.
};

struct Completed {
  /// "EndOfSequence", "MaxTokensReached", "StopSequence", "Cancelled", or "ContextFull": fewer than
  /// `max_tokens`, because the model's context is full.
  std::string reason;
  std::string text;          ///< Follows the last token: withheld until no token could change it.
  std::string note;          ///< A remark for the user, for example that the context is full.
  std::uint32_t tokens = 0;  ///< Positions delivered, those before a resume included.
  std::uint32_t prompt_tokens = 0;
  std::vector<std::string> leases{};  ///< Ids of the leases that it ran under, in order.
  /// What the schema demands and nothing checked: "#/properties/a: 'not'". At most 32.
  std::vector<std::string> unchecked{};
};

class SessionCore;
class Text;

/// One text that is being generated. Move-only.
///
/// Ownership: the caller's; destroying it cancels the text. May outlive its session, which then
/// has cancelled it. Threads: cancel() from any thread, everything else from one at a time.
class [[gnu::visibility("default")]] Stream {
 public:
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;
  ~Stream();

  /// Waits for the next position; nothing at the end, which result() describes. Positions that are
  /// not read yet are kept, at most `max_tokens`.
  std::optional<Token> next();

  /// Waits for the end, drops what was not read, and says how the text ended. May be repeated.
  /// Errors: LeaseRevoked and LeaseFenced without `rebind`; the broker's refusal of a lease
  /// (UnknownTenant, QuotaBlocks, PoolExhausted …); the worker's of the request (BadRequest,
  /// PromptTooLong, QuotaTokens …); a temporary error, once nine have followed each other without a
  /// token.
  Result<Completed> result();

  /// Ends the text; result() then has the reason "Cancelled", unless it ended before. Does not
  /// wait.
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
/// most two seconds if the broker does not answer, and two more if the worker does not either.
/// Threads: one at a time; several sessions of a process are independent. Do not use one after
/// fork() in the child.
class [[gnu::visibility("default")]] Session {
 public:
  /// Connects and checks that a broker listens; takes no lease yet. Errors: BadRequest for a name
  /// or path that cannot be one; FileNotFound, ConnectionRefused, PermissionDenied.
  static Result<Session> connect(SessionOptions options);

  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  /// The lease that is held, or a new one: acquired in one call, without retries. generate() does
  /// this by itself. Errors: the broker's refusal (UnknownTenant, QuotaBlocks, PoolExhausted,
  /// NoModelLoaded, Draining …); ConnectionLost; TimedOut after 30 seconds; BadRequest while a text
  /// runs.
  Result<Lease> acquire();

  /// The lease that is held; nothing before the first, and after the broker has ended it.
  std::optional<Lease> lease() const;

  /// Begins a text under the lease that is held, otherwise under a new one, and returns at once.
  /// The lease stays for the next text. Errors: BadRequest for an invalid request, or while
  /// another text of this session runs; all others come from Stream::result().
  Result<Stream> generate(Request request);

  /// Continues a resumable text of an earlier process: the same request with the same request_id.
  /// `delivered`: ids of the tokens that arrived there, in order; the stream begins behind them. If
  /// the worker no longer has the text, it computes it again from there. Errors: as generate().
  Result<Stream> resume(Request request, std::vector<std::int32_t> delivered);

  /// Gives the lease back. Cancels a text that runs.
  void release();

 private:
  explicit Session(std::shared_ptr<SessionCore> core);
  Result<Stream> begin(Request request, std::vector<std::int32_t> delivered);
  std::shared_ptr<SessionCore> core_;
};

}  // namespace leasehold::api
