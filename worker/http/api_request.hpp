/// Reads the bodies of `/v1/completions`, `/v1/chat/completions` and `/v1/responses`. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ipc/control/messages_tenant.hpp"
#include "worker/http/body_field.hpp"

namespace leasehold::http {

/// `/v1/responses` is translated to a chat request (responses_request.hpp).
enum class Api : std::uint8_t { Completions, Chat, Responses };

/// How the text of a chat calls tools.
enum class ToolForm : std::uint8_t {
  None,       ///< All text is content.
  Marked,     ///< As the model was trained to (worker/text/chat/tool_calls.hpp).
  Call,       ///< The whole text is one call: a schema makes it so.
  Arguments,  ///< The whole text is the arguments of `tool_name`.
};

/// One of both.
struct ApiPrompt {
  std::optional<std::string> text;
  std::optional<std::vector<std::int32_t>> tokens;
};

/// The choices of an answer: `n` for each prompt, in the order of the prompts.
struct ApiRequest {
  static constexpr std::size_t kMaxChoices = 16;

  Api api = Api::Completions;
  /// What all choices have in common, with the first prompt. Without token; the request id is new
  /// unless sent, and the seed follows from it unless sent: a resumable request is sent again.
  wire::RequestSubmit submit;
  std::vector<ApiPrompt> prompts;  ///< Of a completion.
  std::uint32_t n = 1;
  bool echo = false;                    ///< A completion begins with its prompt.
  bool begins_inside_thoughts = false;  ///< As ApiModel.
  ToolForm tool_form = ToolForm::None;
  std::string tool_name;                ///< With ToolForm::Arguments.
  std::vector<std::string> tool_names;  ///< With ToolForm::Marked.
  bool parallel_tool_calls = true;      ///< False: of the calls of a choice only the first counts.
  bool stream = false;
  bool include_usage = false;     ///< A chunk with the usage before [DONE].
  bool continuous_usage = false;  ///< The usage so far in every chunk.
  std::string repeated_fields;    ///< JSON: what a response repeats of its request.
  std::string schema_path;        ///< Of the schema that the worker compiles; empty: none.
};

struct ApiModel {
  std::string name;
  std::string text_identity;  ///< ipc/control/text_identity.hpp
  std::uint32_t max_context = 0;
  std::uint32_t n_vocab = 0;            ///< Of its token ids; 0: the worker checks them.
  bool has_tools = false;               ///< Its chat template prints tools.
  bool begins_inside_thoughts = false;  ///< Its chat template ends with "<think>".
};

/// The tokens of a chat's prompt: what the submission has for the chat template. Errors: those of
/// the worker's PromptEncoder. Any thread.
using EncodeChat =
    std::function<Result<std::vector<std::int32_t>>(const wire::RequestSubmit& chat)>;

/// Of the answer: `n` for each prompt.
std::size_t choices_of(const ApiRequest& request);
/// The submission of a choice, from 0. The first has the request id that was sent, the others a new
/// one each time; each choice of a prompt has a seed of its own.
wire::RequestSubmit submission_of(const ApiRequest& request, std::size_t choice);

/// Reads what a chat has for its template beside its messages and tools. Precondition: `out` has
/// messages. Errors: BadRequest naming the field.
Read<void> read_template_fields(const BodyFields& body, wire::RequestSubmit& out);

/// Every field that OpenAI, vLLM, SGLang or llama.cpp document is honoured, or refused where its
/// value asks for something (unsupported_fields.hpp), or promises nothing about the text. Unknown
/// fields are ignored. Errors: BadRequest; UnknownRequest for another model than `model`. The
/// error's `param` is the JSON pointer of the value without its first slash: "stop/0".
std::expected<ApiRequest, ApiError> parse_api_request(Api api, std::string_view body,
                                                      const ApiModel& model);

}  // namespace leasehold::http
