#include "worker/http/api/api_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "common/checksum.hpp"
#include "common/random.hpp"
#include "common/utf8.hpp"
#include "ipc/control/transport/excess.hpp"
#include "worker/http/api/chat_messages.hpp"
#include "worker/http/api/chat_translation.hpp"
#include "worker/http/api/constraint_fields.hpp"
#include "worker/http/api/emitted_tokens.hpp"
#include "worker/http/api/messages_request.hpp"
#include "worker/http/api/request_fields.hpp"
#include "worker/http/api/responses_request.hpp"
#include "worker/http/api/sampling_fields.hpp"
#include "worker/http/api/tool_fields.hpp"
#include "worker/http/api/unsupported_fields.hpp"

namespace leasehold::http {
namespace {

constexpr std::uint32_t kDefaultCompletionTokens = 16;
constexpr std::uint32_t kMaxTokens = 1u << 20;

class Reader {
 public:
  Reader(Api api, const OrderedJson& body, const ApiModel& model, const RequestDefaults& defaults)
      : api_(api), body_(body), model_(&model), defaults_(&defaults) {}

  Read<ApiRequest> read() {
    out_.api = api_;
    out_.created_unix_s = defaults_->created_unix_s;
    const std::array steps{&Reader::read_model,
                           &Reader::check_implemented,
                           &Reader::read_ids,
                           &Reader::read_text,
                           &Reader::read_length,
                           &Reader::read_sampling,
                           &Reader::read_choices,
                           &Reader::read_logprobs,
                           &Reader::read_stream,
                           &Reader::read_prompt_logprobs,
                           &Reader::read_end_conditions,
                           &Reader::read_emitted_tokens};
    for (const auto step : steps) TRY((this->*step)());
    return std::move(out_);
  }

 private:
  Read<void> read_model() {
    out_.model = TRY(read_model_name(body_["model"], *model_));
    const wire::VisibleAdapter* adapter = find_adapter(*model_, out_.model);
    if (adapter == nullptr) return {};
    out_.submit.adapter = adapter->adapter.value;
    out_.adapter_version = adapter->version;
    return {};
  }

  /// Refuses fields that are not implemented. A chat's template writes the special tokens, and a
  /// completion always gets those of the model.
  Read<void> check_implemented() {
    TRY(check_unsupported(body_));
    const bool is_chat = api_ == Api::Chat;
    const Field special = body_["add_special_tokens"];
    if (TRY(flag_of(special, !is_chat)) == is_chat)
      return special.refuse("add_special_tokens is not supported; leave it out");
    const Field echo = body_["echo"];
    out_.echo = TRY(flag_of(echo, false));
    if (out_.echo && is_chat) return echo.refuse("a chat has no echo; leave it out");
    return {};
  }

  Read<void> read_choices() {
    constexpr const char* kNames[] = {"n", "n_cmpl"};
    constexpr CountRange kChoices{.least = 1, .most = ApiRequest::kMaxChoices};
    const Field n = TRY(one_of(body_, kNames));
    out_.n = TRY(count_of(n, kChoices, 1));
    const Field best_of = body_["best_of"];
    if (TRY(count_of(best_of, kChoices, out_.n)) != out_.n)
      return best_of.refuse("best_of is not supported; send n");
    const std::size_t choices = choices_of(out_);
    if (choices > ApiRequest::kMaxChoices) {
      return n.refuse(
          fmt::format("n for each prompt makes {} choices, and an answer has {}; "
                      "send several requests",
                      choices, ApiRequest::kMaxChoices));
    }
    if (choices == 1 || !out_.submit.resumable) return {};
    return body_["resumable"].refuse("a resumable answer has one choice; send several requests");
  }

  /// In a completion, `logprobs` is a count. In a chat, it is true, and `top_logprobs` is the
  /// count.
  Read<void> read_logprobs() {
    wire::Sampling& sampling = out_.submit.sampling;
    const bool is_chat = api_ == Api::Chat;
    const Field count = body_[is_chat ? "top_logprobs" : "logprobs"];
    if (is_chat) sampling.logprobs = TRY(flag_of(body_["logprobs"], false));
    // Some clients send false to ask for none.
    if (!count || (count.json().is_boolean() && !count.json().get<bool>())) return {};
    sampling.top_logprobs = TRY(count_of(count, {0, SamplingParams::kMaxTopLogprobs}, 0));
    if (!is_chat) sampling.logprobs = true;
    if (!sampling.logprobs && sampling.top_logprobs > 0)
      return count.refuse("top_logprobs needs logprobs: true");
    return {};
  }

  /// The log probabilities of a prompt are sent with `echo`, in OpenAI's form, and with
  /// `prompt_logprobs`, in vLLM's form.
  Read<void> read_prompt_logprobs() {
    const wire::Sampling& sampling = out_.submit.sampling;
    if (out_.echo && sampling.logprobs) out_.submit.prompt_logprobs = sampling.top_logprobs;
    const Field count = body_["prompt_logprobs"];
    out_.prompt_logprobs = count && !(count.json().is_boolean() && !count.json().get<bool>());
    if (out_.prompt_logprobs) {
      const std::uint32_t n = TRY(count_of(count, {0, SamplingParams::kMaxTopLogprobs}, 0));
      out_.submit.prompt_logprobs = std::max(n, out_.submit.prompt_logprobs.value_or(0));
      if (out_.stream)
        return count.refuse("prompt_logprobs are not sent in a stream; send stream: false");
    }
    if (!out_.submit.prompt_logprobs || !out_.submit.resumable) return {};
    return body_["resumable"].refuse(
        "an answer with log probabilities of its prompt is not resumable; leave out resumable");
  }

  Read<void> read_ids() {
    out_.submit.resumable = TRY(flag_of(body_["resumable"], false));
    out_.submit.request_id = TRY(read_request_id(body_, *defaults_));
    return {};
  }

  Read<void> read_text() { return api_ == Api::Chat ? read_chat() : read_prompt(); }

  Read<void> read_prompt() {
    out_.submit.parse_special = TRY(flag_of(body_["parse_special"], false));
    const Field prompt = body_["prompt"];
    if (!prompt) return prompt.refuse("prompt is missing; send a text");
    const OrderedJson& json = prompt.json();
    const bool are_several = json.is_array() && !json.empty() && !json.front().is_number();
    const std::size_t count = are_several ? json.size() : 1;
    if (count > ApiRequest::kMaxChoices)
      return prompt.refuse(fmt::format("there may be {} prompts", ApiRequest::kMaxChoices));
    for (std::size_t i = 0; i < count; ++i)
      out_.prompts.push_back(TRY(read_one_prompt(are_several ? prompt.at(i) : prompt)));
    out_.submit.prompt = out_.prompts.front().text;
    out_.submit.prompt_tokens = out_.prompts.front().tokens;
    return {};
  }

  Read<ApiPrompt> read_one_prompt(const Field& prompt) const {
    if (prompt.is_text()) return ApiPrompt{.text = TRY(text_of(prompt, {}))};
    if (!prompt.is_array() || prompt.json().empty())
      return prompt.refuse("a prompt is a text or an array of token ids; several are an array");
    ApiPrompt read{.tokens = std::vector<std::int32_t>()};
    for (std::size_t i = 0; i < prompt.json().size(); ++i)
      read.tokens->push_back(TRY(token_id(prompt.at(i), model_->n_vocab)));
    return read;
  }

  Read<void> read_chat() {
    out_.submit.messages = TRY(read_chat_messages(body_["messages"]));
    TRY(read_template_fields(body_, out_.submit));
    out_.begins_inside_reasoning =
        out_.submit.add_generation_prompt && model_->begins_inside_reasoning &&
        model_->begins_inside_reasoning(out_.submit.chat_template_kwargs);
    return {};
  }

  Read<void> read_length() {
    const bool is_chat = api_ == Api::Chat;
    constexpr const char* kNames[] = {"max_completion_tokens", "max_tokens", "n_predict"};
    const std::uint32_t otherwise = is_chat ? model_->max_context : kDefaultCompletionTokens;
    const Field length = TRY(one_of(body_, std::span(kNames).subspan(is_chat ? 0 : 1)));
    // In llama.cpp, and in clients made for it, -1 means up to the end of the context.
    const bool is_endless = length && length.json() == -1;
    out_.submit.may_shorten = is_endless || !length;
    const CountRange range{.least = is_chat ? 1u : 0u, .most = kMaxTokens};
    out_.submit.max_emitted_tokens =
        is_endless ? model_->max_context : TRY(count_of(length, range, otherwise));
    return {};
  }

  Read<void> read_sampling() {
    wire::Sampling& sampling = out_.submit.sampling;
    sampling.temperature = 1.0f;
    sampling.seed = default_seed(out_.submit.request_id);
    TRY(http::read_sampling(body_, model_->n_vocab, sampling));
    const ConstraintPaths constraint = TRY(read_constraint(body_, sampling));
    out_.schema_path = constraint.schema;
    out_.submit.ignore_eos = TRY(flag_of(body_["ignore_eos"], false));
    is_constrained_ = !constraint.field.empty();
    if (api_ != Api::Chat) return {};
    TRY(read_tools(body_, constraint.field, out_));
    is_constrained_ = is_constrained_ || sampling.response_format.type != "text";
    return {};
  }

  /// Checks the fields that decide where the text ends.
  Read<void> read_end_conditions() {
    const Field least = body_["min_tokens"];
    const std::uint32_t min_tokens = out_.submit.sampling.min_tokens;
    if (min_tokens > out_.submit.max_emitted_tokens) {
      return least.refuse(
          fmt::format("min_tokens is {}, and the text has at most {} tokens; send a smaller one",
                      min_tokens, out_.submit.max_emitted_tokens));
    }
    if (!is_constrained_ || (min_tokens == 0 && !out_.submit.ignore_eos)) return {};
    const Field field = min_tokens > 0 ? least : body_["ignore_eos"];
    return field.refuse(fmt::format(
        "{} cannot be combined with a format or a forced call, which decide where the text ends; "
        "leave it out",
        field.path()));
  }

  Read<void> read_emitted_tokens() {
    const Field emitted = body_["emitted"];
    if (!emitted || defaults_->may_continue) return read_emitted(emitted, model_->n_vocab, out_);
    return emitted.refuse(
        "emitted is accepted from a gateway only, with the header Leasehold-Stream; leave it out");
  }

  Read<void> read_stream() {
    out_.stream = TRY(flag_of(body_["stream"], false));
    const Field options = body_["stream_options"];
    TRY(check_object(options));
    out_.include_usage = TRY(flag_of(options["include_usage"], false));
    out_.continuous_usage = TRY(flag_of(options["continuous_usage_stats"], false));
    return {};
  }

  Api api_;
  BodyFields body_;
  const ApiModel* model_;
  const RequestDefaults* defaults_;
  ApiRequest out_;
  bool is_constrained_ = false;  // a grammar decides where the text ends
};

Read<OrderedJson> parse_object(std::string_view text) {
  auto body = control::parse_request_json(text, "the body");
  if (!body) return std::unexpected(ApiError{body.error()});
  if (body->is_object()) return *std::move(body);
  return std::unexpected(ApiError{{Errc::BadRequest, "the body is not a JSON object; send one"}});
}

/// Reads a body of an API that is translated to a chat.
Read<ApiRequest> read_translated(Api api, const OrderedJson& body, const ApiModel& model,
                                 const RequestDefaults& defaults) {
  const bool is_message = api == Api::Messages;
  const auto renamed = is_message ? refusal_of_message : refusal_of_response;
  TRY(check_unsupported(BodyFields(body)));
  const OrderedJson chat = TRY(is_message ? chat_of_message(body) : chat_of_response(body));
  auto request = Reader(Api::Chat, chat, model, defaults).read();
  if (!request) return std::unexpected(renamed(request.error()));
  request->api = api;
  request->schema_path = renamed({.error = {}, .param = request->schema_path}).param;
  if (!is_message) request->repeated_fields = repeated_fields(body);
  if (!is_message) return request;
  request->omits_thinking = omits_thinking(body);
  // max_tokens is required, so clients of every model send a number that may not fit this one.
  request->submit.may_shorten = true;
  return request;
}

}  // namespace

std::string full_identity(const ApiModel& model) {
  return fmt::format("{};context={}", model.text_identity, model.max_context);
}

std::string how_computed(const ApiRequest& request, const ApiModel& model) {
  const std::string& adapter = request.submit.adapter;
  if (adapter.empty()) return full_identity(model);
  return fmt::format("{};adapter={}@{}", full_identity(model), adapter, request.adapter_version);
}

std::uint64_t default_seed(const RequestId& id) {
  return Checksum::of(id.value.data(), id.value.size()) >> 1;
}

bool has_name(const ApiModel& model, std::string_view asked) {
  return asked == model.name || std::ranges::find(model.aliases, asked) != model.aliases.end();
}

const wire::VisibleAdapter* find_adapter(const ApiModel& model, std::string_view asked) {
  if (has_name(model, asked)) return nullptr;
  const auto found = std::ranges::find_if(
      model.adapters, [asked](const auto& adapter) { return adapter.adapter.value == asked; });
  return found == model.adapters.end() ? nullptr : &*found;
}

bool is_adapter(const ApiModel& model, std::string_view asked) {
  return find_adapter(model, asked) != nullptr;
}

ApiError unknown_model(const ApiModel& model, std::string_view asked) {
  if (model.adapters_unknown) return {*model.adapters_unknown};
  return {
      {Errc::UnknownRequest, fmt::format("no model '{}'; this worker serves '{}', see /v1/models",
                                         printable_excerpt(asked), model.name)},
      "model",
      "model_not_found"};
}

std::size_t choices_of(const ApiRequest& request) {
  return request.n * std::max<std::size_t>(1, request.prompts.size());
}

wire::RequestSubmit submission_of(const ApiRequest& request, std::size_t choice) {
  wire::RequestSubmit submit = request.submit;
  submit.sampling.seed += choice % request.n;
  submit.asked_at_unix_s = request.created_unix_s;
  // A gateway may send a text again before this worker has ended the earlier attempt.
  const bool is_attempt = request.beat && !submit.resumable;
  if (choice > 0 || is_attempt) submit.request_id = {mint_request_id()};
  if (choice < request.emitted_adapters.size())
    submit.adapter_digest = request.emitted_adapters[choice];
  if (!generates_again(request)) {
    const auto emitted = emitted_of(request, choice);
    submit.emitted.assign(emitted.begin(), emitted.end());
  }
  // The answer of a chat has them once.
  if (choice > 0 && request.api == Api::Chat) submit.prompt_logprobs.reset();
  if (request.prompts.empty()) return submit;
  const ApiPrompt& prompt = request.prompts[choice / request.n];
  submit.prompt = prompt.text;
  submit.prompt_tokens = prompt.tokens;
  return submit;
}

Read<void> read_template_fields(const BodyFields& body, wire::RequestSubmit& out) {
  const Field variables = body["chat_template_kwargs"];
  TRY(check_object(variables));
  OrderedJson kwargs = variables ? variables.json() : OrderedJson::object();
  if (const Field effort = body["reasoning_effort"]) {
    // the union of what OpenAI, Anthropic and the templates of models know
    std::string word =
        TRY(word_of(effort, {"none", "minimal", "low", "medium", "high", "xhigh", "max"}));
    if (!kwargs.contains("reasoning_effort")) kwargs["reasoning_effort"] = std::move(word);
  }
  if (!kwargs.empty()) out.chat_template_kwargs = kwargs.dump();
  const Field continues = body["continue_final_message"];
  const Field begins = body["add_generation_prompt"];
  out.continue_final_message = TRY(flag_of(continues, false));
  out.add_generation_prompt = TRY(flag_of(begins, !out.continue_final_message));
  if (!out.continue_final_message) return {};
  if (out.add_generation_prompt)
    return continues.refuse(
        "continue_final_message and add_generation_prompt exclude each other; send one");
  if (!out.messages->back().content.value_or("").empty()) return {};
  return continues.refuse("the last message has no text that could be continued");
}

Read<ApiRequest> parse_api_request(Api api, std::string_view text, const ApiModel& model,
                                   const RequestDefaults& defaults) {
  const OrderedJson body = TRY(parse_object(text));
  const bool is_translated = api == Api::Responses || api == Api::Messages;
  return is_translated ? read_translated(api, body, model, defaults)
                       : Reader(api, body, model, defaults).read();
}

Read<wire::RequestSubmit> parse_message_prompt(std::string_view text, const ApiModel& model) {
  OrderedJson body = TRY(parse_object(text));
  body["max_tokens"] = kMaxTokens;
  return TRY(read_translated(Api::Messages, body, model, {})).submit;
}

}  // namespace leasehold::http
