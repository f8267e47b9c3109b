#include "worker/http/api_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "common/random.hpp"
#include "common/utf8.hpp"
#include "ipc/control/excess.hpp"
#include "worker/http/chat_messages.hpp"
#include "worker/http/responses_request.hpp"
#include "worker/http/sampling_fields.hpp"

namespace leasehold::http {
namespace {

using Json = nlohmann::json;
using Body = OrderedJson;

constexpr std::uint32_t kDefaultCompletionTokens = 16;
constexpr std::uint32_t kMaxTokens = 1u << 20;
constexpr std::uint32_t kMaxTopLogprobs = 20;
constexpr std::size_t kMaxTools = 128;

/// Fields that change the answer, and are not built.
constexpr std::array kNotBuilt{"functions", "suffix", "audio", "prediction"};

/// What was sent, for a message.
std::string shown(const Body& value) {
  if (value.is_structured()) return value.is_array() ? "an array" : "an object";
  if (value.is_string())
    return fmt::format("the text '{}'", printable_excerpt(value.get_ref<const std::string&>()));
  return value.dump();
}

class Reader {
 public:
  Reader(Api api, const Body& body, const ApiModel& model)
      : api_(api), body_(&body), model_(&model) {}

  std::expected<ApiRequest, ApiError> read() {
    out_.api = api_;
    out_.begins_inside_thoughts = model_->begins_inside_thoughts;
    const std::array steps{&Reader::read_model, &Reader::check_built,  &Reader::read_ids,
                           &Reader::read_text,  &Reader::read_length,  &Reader::read_sampling,
                           &Reader::read_tools, &Reader::read_choices, &Reader::read_logprobs,
                           &Reader::read_stream};
    for (const auto step : steps) {
      (this->*step)();
      if (refused_) return std::unexpected(*std::move(refused_));
    }
    return std::move(out_);
  }

 private:
  /// Null for a field that is missing or null.
  const Body* find(const char* key) const { return field_of(*body_, key); }
  void refuse(std::string param, std::string detail, Errc code = Errc::BadRequest) {
    if (!refused_) refused_ = ApiError{{code, std::move(detail)}, std::move(param)};
  }
  bool read_flag(const char* key, const Body& in, bool& out) {
    const Body* found = field_of(in, key);
    if (found == nullptr) return true;
    if (!found->is_boolean()) return refuse(key, fmt::format("{} is true or false", key)), false;
    out = found->get<bool>();
    return true;
  }

  void read_model() {
    const Body* name = find("model");
    if (name == nullptr) return refuse("model", "model is missing; see /v1/models");
    if (!name->is_string()) return refuse("model", "model is a text; see /v1/models");
    const std::string& asked = name->get_ref<const std::string&>();
    if (asked == model_->name) return;
    refuse("model",
           fmt::format("no model '{}'; this worker serves '{}'", printable_excerpt(asked),
                       model_->name),
           Errc::UnknownRequest);
  }

  void check_built() {
    for (const char* key : kNotBuilt) {
      const Body* found = find(key);
      const bool harmless = found == nullptr || (found->is_boolean() && !found->get<bool>()) ||
                            (found->is_array() && found->empty()) ||
                            (found->is_string() && *found == "none");
      if (!harmless) return refuse(key, fmt::format("{} is not supported; leave it out", key));
    }
  }

  void read_choices() {
    if (!read_count("n", 1, ApiRequest::kMaxChoices, out_.n)) return;
    std::uint32_t best_of = out_.n;
    if (!read_count("best_of", 1, ApiRequest::kMaxChoices, best_of)) return;
    if (best_of != out_.n) return refuse("best_of", "best_of is not supported; send n");
    const std::size_t choices = choices_of(out_);
    if (choices > ApiRequest::kMaxChoices) {
      return refuse("n", fmt::format("n for each prompt makes {} choices, and an answer has {}; "
                                     "send several requests",
                                     choices, ApiRequest::kMaxChoices));
    }
    if (choices > 1 && out_.submit.resumable)
      return refuse("resumable", "a resumable answer has one choice; send several requests");
    if (api_ == Api::Completions) read_flag("echo", *body_, out_.echo);
  }

  /// A completion has `logprobs`: COUNT, a chat `logprobs`: true and `top_logprobs`: COUNT.
  void read_logprobs() {
    wire::Sampling& sampling = out_.submit.sampling;
    const bool is_chat = api_ == Api::Chat;
    const char* key = is_chat ? "top_logprobs" : "logprobs";
    if (is_chat && !read_flag("logprobs", *body_, sampling.logprobs)) return;
    const Body* count = find(key);
    // Some clients send false for none.
    if (count == nullptr || (count->is_boolean() && !count->get<bool>())) return;
    if (!read_count(key, 0, kMaxTopLogprobs, sampling.top_logprobs)) return;
    if (!is_chat) sampling.logprobs = true;
    if (!sampling.logprobs && sampling.top_logprobs > 0)
      return refuse("top_logprobs", "top_logprobs needs logprobs: true");
    if (out_.echo) refuse("logprobs", "logprobs of a prompt are not computed; leave out echo");
  }

  bool read_count(const char* key, std::uint32_t least, std::size_t most, std::uint32_t& out) {
    const Body* found = find(key);
    if (found == nullptr) return true;
    const bool fits = found->is_number_unsigned() && *found >= least && *found <= most;
    if (!fits) {
      return refuse(key, fmt::format("{} is a whole number from {} to {}, got {}", key, least, most,
                                     shown(*found))),
             false;
    }
    out = found->get<std::uint32_t>();
    return true;
  }

  void read_ids() {
    out_.submit.request_id = {mint_request_id()};
    if (!read_flag("resumable", *body_, out_.submit.resumable)) return;
    const char* key = find("request_id") != nullptr ? "request_id" : "rid";
    const Body* id = find(key);
    if (id == nullptr) return;
    const auto parsed =
        RequestId::parse(id->is_string() ? id->get_ref<const std::string&>() : std::string());
    if (!parsed) return refuse(key, fmt::format("{}: {}", key, parsed.error().detail));
    out_.submit.request_id = *parsed;
  }

  void read_text() { api_ == Api::Chat ? read_messages() : read_prompt(); }

  void read_prompt() {
    const Body* prompt = find("prompt");
    if (prompt == nullptr) return refuse("prompt", "prompt is missing; send a text");
    const bool are_several = prompt->is_array() && !prompt->empty() && !prompt->front().is_number();
    const std::size_t count = are_several ? prompt->size() : 1;
    if (count > ApiRequest::kMaxChoices)
      return refuse("prompt", fmt::format("there may be {} prompts", ApiRequest::kMaxChoices));
    for (std::size_t i = 0; i < count; ++i)
      if (!read_one_prompt(are_several ? (*prompt)[i] : *prompt)) return;
    out_.submit.prompt = out_.prompts.front().text;
    out_.submit.prompt_tokens = out_.prompts.front().tokens;
  }

  bool read_one_prompt(const Body& prompt) {
    ApiPrompt& read = out_.prompts.emplace_back();
    if (prompt.is_string()) {
      read.text = prompt.get<std::string>();
      return true;
    }
    read.tokens.emplace();
    const auto is_id = [](const Body& token) {
      return token.is_number_unsigned() && token.get<std::uint64_t>() <= 0x7FFF'FFFF;
    };
    if (!prompt.is_array() || prompt.empty() || !std::ranges::all_of(prompt, is_id))
      return refuse("prompt", "a prompt is a text or an array of token ids; several are an array"),
             false;
    for (const Body& token : prompt) read.tokens->push_back(token.get<std::int32_t>());
    return true;
  }

  void read_messages() {
    auto read = read_chat_messages(find("messages"));
    if (!read) return refuse("messages", read.error().detail);
    out_.submit.messages = *std::move(read);
  }

  /// Functions by their names; false and a refusal for anything else.
  bool read_functions(const Body& tools, std::map<std::string, const Body*>& out) {
    for (const Body& tool : tools) {
      const Body* function = field_of(tool, "function");
      const Body* name = function != nullptr ? field_of(*function, "name") : nullptr;
      const Body* type = function != nullptr ? field_of(tool, "type") : nullptr;
      const bool is_function = name != nullptr && name->is_string() && *name != "" &&
                               type != nullptr && *type == "function";
      if (!is_function)
        return refuse("tools", "a tool is {\"type\": \"function\", \"function\": {\"name\": …}}"),
               false;
      out[name->get<std::string>()] = function;
    }
    return true;
  }

  void read_tools() {
    if (api_ != Api::Chat) return;
    if (const Body* kwargs = find("chat_template_kwargs")) {
      if (!kwargs->is_object())
        return refuse("chat_template_kwargs", "chat_template_kwargs is an object");
      out_.submit.chat_template_kwargs = kwargs->dump();
    }
    const Body* choice = find("tool_choice");
    const bool is_off = choice != nullptr && *choice == "none";
    const Body* tools = find("tools");
    if (tools != nullptr && !tools->is_array()) return refuse("tools", "tools is an array");
    if (tools != nullptr && tools->size() > kMaxTools)
      return refuse("tools", fmt::format("there may be {} tools", kMaxTools));
    std::map<std::string, const Body*> functions;
    if (tools != nullptr && !read_functions(*tools, functions)) return;
    if (!functions.empty() && !is_off) {
      if (!model_->has_tools)
        return refuse("tools", "this model's chat template has no tools; leave them out");
      out_.submit.tools = tools->dump();
      // A text that a format binds has no place for calls, and may quote one.
      if (out_.submit.sampling.response_format.type == "text") out_.tool_form = ToolForm::Marked;
      for (const auto& [name, function] : functions) out_.tool_names.push_back(name);
    }
    if (choice != nullptr && !is_off && *choice != "auto") force_call(*choice, functions);
  }

  /// A schema makes the text a call: of the tool that is named, or of any.
  void force_call(const Body& choice, const std::map<std::string, const Body*>& functions) {
    if (out_.submit.sampling.response_format.type != "text")
      return refuse("tool_choice", "tool_choice and response_format exclude each other; send one");
    const auto schema_of = [](const Body& function) {
      const Body* parameters = field_of(function, "parameters");
      return parameters != nullptr && parameters->is_object() ? *parameters
                                                              : Body{{"type", "object"}};
    };
    Body schema;
    const Body* named = field_of(choice, "function");
    const Body* key = named != nullptr ? field_of(*named, "name") : nullptr;
    const auto name = key != nullptr && key->is_string() ? key->get<std::string>() : std::string();
    if (const auto function = functions.find(name); function != functions.end()) {
      out_.tool_form = ToolForm::Arguments;
      out_.tool_name = name;
      schema = schema_of(*function->second);
    } else if (choice == "required" && !functions.empty()) {
      out_.tool_form = ToolForm::Call;
      schema["anyOf"] = Body::array();
      for (const auto& [called, described] : functions) {
        Body call{{"type", "object"}};
        call["properties"]["name"]["const"] = called;
        call["properties"]["arguments"] = schema_of(*described);
        call["required"] = {"name", "arguments"};
        call["additionalProperties"] = false;
        schema["anyOf"].push_back(std::move(call));
      }
    } else {
      return refuse("tool_choice", "tool_choice is none, auto, required or one of the tools");
    }
    out_.submit.sampling.response_format = {
        .type = "json_schema", .schema = schema.dump(), .strict = false};
  }

  void read_length() {
    const bool is_chat = api_ == Api::Chat;
    const char* key = is_chat && find("max_completion_tokens") != nullptr ? "max_completion_tokens"
                                                                          : "max_tokens";
    const std::uint32_t otherwise = is_chat ? model_->max_context : kDefaultCompletionTokens;
    out_.submit.max_emitted_tokens = otherwise;
    out_.submit.may_shorten = find(key) == nullptr;
    read_count(key, 1, kMaxTokens, out_.submit.max_emitted_tokens);
  }

  /// The wire's own reader checks types and ranges.
  void read_sampling() {
    const std::size_t seed = std::hash<std::string>{}(out_.submit.request_id.value) >> 1;
    Json sampling{{"temperature", 1.0}, {"seed", seed}};
    for (const char* key : kSamplingFields)
      if (const Body* found = find(key)) sampling[key] = Json::parse(found->dump());
    if (const Body* format = find("response_format")) {
      if (!read_format(*format, sampling["response_format"])) return;
    }
    auto read = wire::Sampling::from_json(sampling);
    if (read) {
      out_.submit.sampling = *std::move(read);
      return;
    }
    const std::string& detail = read.error().detail;
    for (const char* key : kSamplingFields)
      if (detail.contains(key)) return refuse(key, detail);
    refuse("response_format", detail);
  }

  bool read_format(const Body& format, Json& out) {
    const Body* type = field_of(format, "type");
    if (type == nullptr || !type->is_string())
      return refuse("response_format", "response_format is an object with the text 'type'"), false;
    out["type"] = type->get<std::string>();
    if (*type != "json_schema") return true;
    const Body* named = field_of(format, "json_schema");
    const Body* schema = named != nullptr ? field_of(*named, "schema") : nullptr;
    if (schema == nullptr || !schema->is_object())
      return refuse("response_format", "json_schema is an object with the object 'schema'"), false;
    out["json_schema"]["schema"] = schema->dump();
    bool strict = false;
    if (!read_flag("strict", *named, strict)) return false;
    out["json_schema"]["strict"] = strict;
    return true;
  }

  void read_stream() {
    if (!read_flag("ignore_eos", *body_, out_.submit.ignore_eos)) return;
    if (!read_flag("stream", *body_, out_.stream)) return;
    const Body* options = find("stream_options");
    if (options == nullptr) return;
    if (!options->is_object()) return refuse("stream_options", "stream_options is an object");
    read_flag("include_usage", *options, out_.include_usage);
    read_flag("continuous_usage_stats", *options, out_.continuous_usage);
  }

  Api api_;
  const Body* body_;
  const ApiModel* model_;
  ApiRequest out_;
  std::optional<ApiError> refused_;
};

}  // namespace

std::expected<ApiRequest, ApiError> parse_api_request(Api api, std::string_view text,
                                                      const ApiModel& model) {
  const auto body = control::parse_request_json(text, "the body");
  if (!body) return std::unexpected(ApiError{body.error()});
  if (!body->is_object())
    return std::unexpected(ApiError{{Errc::BadRequest, "the body is not a JSON object; send one"}});
  if (api != Api::Responses) return Reader(api, *body, model).read();
  const auto chat = chat_of_response(*body);
  if (!chat) return std::unexpected(chat.error());
  auto request = Reader(Api::Chat, *chat, model).read();
  if (!request) return std::unexpected(refusal_of_response(request.error()));
  request->api = api;
  request->repeated_fields = repeated_fields(*body);
  return request;
}

}  // namespace leasehold::http
