/// Reads the bodies of `/v1/completions`, `/v1/chat/completions`, `/v1/responses` and
/// `/v1/messages`. Pure.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ipc/control/messages/adapters/adapters.hpp"
#include "ipc/control/messages/tenant.hpp"
#include "worker/http/api/body_field.hpp"
#include "worker/text/chat/call_forms.hpp"

namespace leasehold::http {

/// `/v1/responses` and `/v1/messages` are translated to chat requests (responses_request.hpp,
/// messages_request.hpp).
enum class Api : std::uint8_t { Completions, Chat, Responses, Messages };

/// How the text of a chat calls tools.
enum class ToolForm : std::uint8_t {
  None,       ///< All text is content.
  Marked,     ///< Calls have the model's own marks (worker/text/chat/tool_calls.hpp).
  Call,       ///< A schema forces the whole text to be one call.
  Arguments,  ///< A schema forces it to be the arguments of `tool_name`.
};

/// A text or tokens: exactly one of them is set.
struct ApiPrompt {
  std::optional<std::string> text;
  std::optional<std::vector<std::int32_t>> tokens;
};

/// A parsed request. Its answer has `n` choices for each prompt, in the order of the prompts.
struct ApiRequest {
  static constexpr std::size_t kMaxChoices = 16;

  Api api = Api::Completions;
  std::string model;                  ///< The name by which the request reached the model.
  std::uint32_t adapter_version = 0;  ///< Of `submit.adapter`, as the broker named it last.
  /// The submission that all choices share, with the first prompt and without a lease token. If the
  /// client does not send them, the request id is RequestDefaults::request_id or new, and the seed
  /// is default_seed of the request id: a request that is sent again, to this worker or another
  /// one, has the same seed.
  wire::RequestSubmit submit;
  std::int64_t created_unix_s = 0;  ///< The answer's `created`, and the chat template's time.
  std::vector<ApiPrompt> prompts;   ///< Only for a completion.
  /// The tokens of the first choices that another host has sent (emitted_tokens.hpp).
  std::vector<std::vector<std::int32_t>> emitted;
  /// Of the first choices: RequestSubmitted::adapter_digest of the host that sent `emitted`.
  std::vector<std::string> emitted_adapters;
  /// Set: the answer is a continuable stream (../answer_output.hpp), never silent for longer.
  std::optional<std::chrono::milliseconds> beat;
  std::uint32_t n = 1;
  bool echo = false;  ///< The text of a completion, and its logprobs, begin with its prompt.
  bool prompt_logprobs = false;          ///< The answer has vLLM's field of this name.
  bool begins_inside_reasoning = false;  ///< The prompt ends inside the model's reasoning.
  ToolForm tool_form = ToolForm::None;
  std::string tool_name;                 ///< Only for ToolForm::Arguments.
  std::vector<CalledTool> called_tools;  ///< Only for ToolForm::Marked.
  bool parallel_tool_calls = true;       ///< False: a choice keeps only its first call.
  bool stream = false;
  bool include_usage = false;     ///< Send a chunk with the usage before [DONE].
  bool continuous_usage = false;  ///< Send the usage so far in every chunk.
  /// The path of the JSON schema that the worker compiles; empty: none.
  std::string schema_path;
  std::string repeated_fields;  ///< JSON: the request fields that a response repeats.
  bool omits_thinking = false;  ///< A message has its thoughts without their text.
};

/// What applies to a request whose body does not say it.
struct RequestDefaults {
  std::optional<RequestId> request_id;  ///< If missing, the server makes an id.
  std::int64_t created_unix_s = 0;      ///< A body has no field for it.
  bool may_continue = false;            ///< The body may have `emitted`: a gateway sent it.
};

struct ApiModel {
  std::string name;
  std::vector<std::string> aliases;  ///< Further names, under which requests reach it too.
  /// The adapters that the caller may use, in the order of their names. A name of the model comes
  /// before them.
  std::vector<wire::VisibleAdapter> adapters = {};
  std::optional<Error> adapters_unknown = std::nullopt;  ///< Why `adapters` is not known.
  std::string text_identity;  ///< See ipc/control/tokens/text_identity.hpp.
  std::uint32_t max_context = 0;
  std::uint32_t n_vocab = 0;  ///< Token ids are below it. 0: only the worker checks them.
  /// True if a prompt that the chat template makes with these `chat_template_kwargs` (JSON; empty:
  /// none) ends inside the model's reasoning. Null: never. Any thread.
  std::function<bool(const std::string& kwargs)> begins_inside_reasoning = nullptr;
  std::uint32_t embedding_width = 0;  ///< Elements of its embeddings.
  std::int64_t changed_unix_s = 0;    ///< When its file was last changed; 0: not known.
};

/// Names what decides every byte of a text beside its request: the text identity, and the context
/// length, which ends a text without a limit: "sha256:…/int8/f16/3;context=512".
std::string full_identity(const ApiModel& model);
/// The same for one request, with its adapter.
std::string how_computed(const ApiRequest& request, const ApiModel& model);

/// FNV-1a with 64 bits (common/checksum.hpp) of the request id, without its lowest bit.
std::uint64_t default_seed(const RequestId& id);

/// True if `asked` is one of the model's names.
bool has_name(const ApiModel& model, std::string_view asked);
/// The caller's adapter of this name; null if there is none, and for a name of the model.
const wire::VisibleAdapter* find_adapter(const ApiModel& model, std::string_view asked);
/// True if there is such an adapter.
bool is_adapter(const ApiModel& model, std::string_view asked);
/// The error for a request that names another model. It is the same for an adapter of another
/// tenant as for a name that does not exist.
ApiError unknown_model(const ApiModel& model, std::string_view asked);

/// Applies the chat template to the submission and returns the tokens of the prompt. Errors: those
/// of the worker's PromptEncoder. Any thread.
using EncodeChat =
    std::function<Result<std::vector<std::int32_t>>(const wire::RequestSubmit& chat)>;

/// The number of choices in the answer: `n` for each prompt.
std::size_t choices_of(const ApiRequest& request);
/// The submission of the choice with this index, from 0. The first choice has the id of the
/// request, and each other choice gets a new id on every call; so does the first one of a
/// continuable stream that is not resumable. Each choice of a prompt has its own seed. The chat
/// template's time is `created_unix_s`. Has the choice's `emitted`, unless they are generated
/// again.
wire::RequestSubmit submission_of(const ApiRequest& request, std::size_t choice);

/// Reads the chat template's inputs other than the messages and tools. Precondition: `out` has
/// messages. Errors: BadRequest naming the field.
Read<void> read_template_fields(const BodyFields& body, wire::RequestSubmit& out);

/// Parses a body. A field that OpenAI, Anthropic, vLLM, SGLang or llama.cpp document and that
/// affects the text is honoured, or refused unless its value has no effect
/// (unsupported_fields.hpp). All other fields are ignored. Errors: BadRequest; UnknownRequest if
/// the body names another model. The error's `param` is the JSON pointer of the value without its
/// first slash: "stop/0".
Read<ApiRequest> parse_api_request(Api api, std::string_view body, const ApiModel& model,
                                   const RequestDefaults& defaults = {});

/// Parses the body of `/v1/messages/count_tokens`, which is that of a message without `max_tokens`,
/// and returns the submission with its prompt. Errors: those of parse_api_request.
Read<wire::RequestSubmit> parse_message_prompt(std::string_view body, const ApiModel& model);

}  // namespace leasehold::http
