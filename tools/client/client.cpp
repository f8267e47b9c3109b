// The classes of leasehold/client.hpp, in terms of SessionCore.
#include "tools/client/include/leasehold/client.hpp"

#include <utility>

#include "common/machine/start_thread.hpp"
#include "common/random.hpp"
#include "ipc/control/transport/client.hpp"
#include "tools/cli/broker_address.hpp"
#include "tools/client/session_core.hpp"

namespace leasehold::api {
namespace {

template <class T>
std::optional<T> unless_empty(T value) {
  return value.empty() ? std::nullopt : std::optional(std::move(value));
}

leasehold::Result<client::SessionConfig> to_config(SessionOptions options) {
  const TenantId tenant = TRY(TenantId::parse(options.tenant));
  std::optional<ModelName> model;
  if (!options.model.empty()) model = TRY(ModelName::parse(std::move(options.model)));
  client::SessionConfig config{.tenant = tenant,
                               .worker = unless_empty(std::move(options.worker)),
                               .model = std::move(model),
                               .api_key = unless_empty(std::move(options.api_key)),
                               .blocks = options.blocks,
                               .rebind = options.rebind,
                               .any_arithmetic = options.any_arithmetic};
  config.retry.rebind_timeout = options.rebind_timeout;
  config.broker_path =
      cli::broker_address(unless_empty(std::move(options.broker)), cli::read_environment());
  TRY(control::Client::connect(config.broker_path));
  return config;
}

std::optional<std::vector<wire::ChatMessage>> to_messages(std::vector<Message> messages) {
  if (messages.empty()) return std::nullopt;
  std::vector<wire::ChatMessage> turns;
  for (Message& message : messages) {
    const bool only_calls = message.content.empty() && !message.tool_calls.empty();
    turns.push_back(
        {.role = std::move(message.role),
         .content = only_calls ? std::nullopt : std::optional(std::move(message.content)),
         .tool_calls = std::move(message.tool_calls),
         .tool_call_id = std::move(message.tool_call_id),
         .name = std::move(message.name),
         .reasoning_content = std::move(message.reasoning_content)});
  }
  return turns;
}

wire::ResponseFormat to_format(Request& request) {
  if (request.json_object) return {.type = "json_object"};
  if (request.json_schema.empty()) return {};
  return {.type = "json_schema",
          .schema = std::move(request.json_schema),
          .strict = request.strict_schema};
}

wire::Sampling to_sampling(Request& request) {
  wire::Sampling sampling;
  sampling.temperature = request.temperature;
  sampling.seed = request.seed;
  sampling.top_k = request.top_k;
  sampling.top_p = request.top_p;
  sampling.min_p = request.min_p;
  sampling.typical_p = request.typical_p;
  sampling.repetition_penalty = request.repetition_penalty;
  sampling.presence_penalty = request.presence_penalty;
  sampling.frequency_penalty = request.frequency_penalty;
  sampling.penalty_window = request.penalty_window;
  sampling.logit_bias.by_token = std::move(request.logit_bias);
  sampling.logprobs = request.logprobs;
  sampling.top_logprobs = request.top_logprobs;
  sampling.stop.all = std::move(request.stop);
  sampling.stop_token_ids = std::move(request.stop_token_ids);
  sampling.response_format = to_format(request);
  sampling.grammar = std::move(request.grammar);
  return sampling;
}

leasehold::Result<void> check(const Request& request) {
  const int prompts =
      !request.prompt.empty() + !request.prompt_tokens.empty() + !request.messages.empty();
  if (prompts != 1)
    return fail(Errc::BadRequest,
                "a request has exactly one of prompt, prompt_tokens and messages, this one has " +
                    std::to_string(prompts));
  const int forms = request.json_object + !request.json_schema.empty() + !request.grammar.empty();
  if (forms > 1)
    return fail(Errc::BadRequest,
                "a request has at most one of json_object, json_schema and grammar, this one has " +
                    std::to_string(forms));
  if (request.resumable && request.request_id.empty())
    return fail(Errc::BadRequest,
                "a resumable request needs a request_id, by which the next process names it");
  return {};
}

leasehold::Result<RequestId> to_id(const std::string& id) {
  return RequestId::parse(id.empty() ? mint_request_id() : id);
}

leasehold::Result<wire::RequestSubmit> to_submit(EmbeddingRequest request) {
  if (request.prompt.empty() == request.prompt_tokens.empty())
    return fail(Errc::BadRequest, "an embedding has exactly one of prompt and prompt_tokens");
  wire::RequestSubmit submit{.request_id = TRY(to_id(request.request_id))};
  submit.prompt = unless_empty(std::move(request.prompt));
  submit.prompt_tokens = unless_empty(std::move(request.prompt_tokens));
  submit.parse_special = request.parse_special;
  submit.embedding = wire::Embedding{std::move(request.pooling), request.dimensions};
  submit.max_emitted_tokens = 0;
  submit.priority = request.priority;
  if (request.deadline.count() > 0) submit.deadline_ms = request.deadline.count();
  return submit;
}

leasehold::Result<std::optional<TextIdentity>> to_identity(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return TRY(TextIdentity::parse(text));
}

leasehold::Result<wire::RequestSubmit> to_submit(Request request,
                                                 std::vector<std::int32_t> delivered) {
  TRY(check(request));
  wire::RequestSubmit submit{.sampling = to_sampling(request)};
  submit.request_id = TRY(to_id(request.request_id));
  submit.prompt = unless_empty(std::move(request.prompt));
  submit.prompt_tokens = unless_empty(std::move(request.prompt_tokens));
  submit.messages = to_messages(std::move(request.messages));
  submit.tools = std::move(request.tools);
  submit.chat_template_kwargs = std::move(request.chat_template_kwargs);
  submit.asked_at_unix_s = std::chrono::duration_cast<std::chrono::seconds>(
                               std::chrono::system_clock::now().time_since_epoch())
                               .count();
  submit.emitted = std::move(delivered);
  submit.max_emitted_tokens = request.max_tokens;
  submit.ignore_eos = request.ignore_eos;
  submit.priority = request.priority;
  submit.resumable = request.resumable;
  submit.adapter = std::move(request.adapter);
  if (request.deadline.count() > 0) submit.deadline_ms = request.deadline.count();
  return submit;
}

}  // namespace

// ---------------------------------------------------------------- Session

Session::Session(std::shared_ptr<SessionCore> core) : core_(std::move(core)) {}
Session::Session(Session&&) noexcept = default;

Session& Session::operator=(Session&& other) noexcept {
  std::swap(core_, other.core_);
  return *this;
}

Session::~Session() {
  if (core_) core_->release();
}

Result<Session> Session::connect(SessionOptions options) {
  auto config = to_config(std::move(options));
  if (!config) return to_api(config.error());
  try {
    return Session(std::make_shared<SessionCore>(*std::move(config)));
  } catch (const std::system_error& refused) {
    return to_api(thread_refused("the thread of the session", refused));
  }
}

Result<Lease> Session::acquire() {
  return core_->acquire();
}

std::optional<Lease> Session::lease() const {
  return core_->lease();
}

Result<Stream> Session::generate(Request request) {
  return begin(std::move(request), {});
}

Result<Stream> Session::resume(Request request, std::vector<std::int32_t> delivered) {
  request.resumable = true;
  return begin(std::move(request), std::move(delivered));
}

Result<Stream> Session::begin(Request request, std::vector<std::int32_t> delivered) {
  auto identity = to_identity(request.text_identity);
  if (!identity) return to_api(identity.error());
  auto submit = to_submit(std::move(request), std::move(delivered));
  if (!submit) return to_api(submit.error());
  auto text = core_->begin(*std::move(submit), *std::move(identity));
  if (!text) return text.error();
  return Stream(core_, *std::move(text));
}

Result<std::vector<float>> Session::embed(EmbeddingRequest request) {
  auto submit = to_submit(std::move(request));
  if (!submit) return to_api(submit.error());
  auto text = core_->begin(*std::move(submit), std::nullopt);
  if (!text) return text.error();
  return (*text)->embedding();
}

void Session::release() {
  core_->release();
}

// ---------------------------------------------------------------- Stream

Stream::Stream(std::shared_ptr<SessionCore> core, std::shared_ptr<Text> text)
    : core_(std::move(core)), text_(std::move(text)) {}
Stream::Stream(Stream&&) noexcept = default;

Stream& Stream::operator=(Stream&& other) noexcept {
  std::swap(core_, other.core_);
  std::swap(text_, other.text_);
  return *this;
}

Stream::~Stream() {
  if (text_) cancel();
}

std::optional<Token> Stream::next() {
  return text_->next();
}

Result<Completed> Stream::result() {
  return text_->result();
}

void Stream::cancel() {
  core_->cancel(text_);
}

const std::string& Stream::request_id() const {
  return text_->request_id();
}

}  // namespace leasehold::api
