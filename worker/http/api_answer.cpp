#include "worker/http/api_answer.hpp"

#include <nlohmann/json.hpp>
#include <utility>

namespace leasehold::http {
namespace {

using Json = nlohmann::json;

std::string line_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json json_of(UsageCount usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
}

Json chat_logprob(const TextLogprob& token) {
  Json bytes = Json::array();
  for (const char c : token.text) bytes.push_back(static_cast<unsigned char>(c));
  return {{"token", token.text}, {"logprob", token.logprob}, {"bytes", std::move(bytes)}};
}

Json chat_logprobs(std::span<const TokenLogprobs> tokens) {
  Json content = Json::array();
  for (const TokenLogprobs& token : tokens) {
    Json entry = chat_logprob(token.token);
    entry["top_logprobs"] = Json::array();
    for (const TextLogprob& top : token.top) entry["top_logprobs"].push_back(chat_logprob(top));
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

/// Tokens that are not UTF-8 would be equal keys once they are replaced.
std::string key_of(const std::string& text) {
  return Json::parse(line_of(text)).get<std::string>();
}

Json completion_logprobs(std::span<const TokenLogprobs> tokens) {
  Json json{{"tokens", Json::array()},
            {"token_logprobs", Json::array()},
            {"top_logprobs", Json::array()},
            {"text_offset", Json::array()}};
  for (const TokenLogprobs& token : tokens) {
    json["tokens"].push_back(token.token.text);
    json["token_logprobs"].push_back(token.token.logprob);
    json["text_offset"].push_back(token.text_offset);
    Json top = Json::object();
    for (const TextLogprob& one : token.top) top.emplace(key_of(one.text), one.logprob);
    json["top_logprobs"].push_back(std::move(top));
  }
  return json;
}

Json calls_of(std::span<const ApiToolCall> calls, bool has_index) {
  Json all = Json::array();
  for (const ApiToolCall& one : calls) {
    Json json{{"id", one.id},
              {"type", "function"},
              {"function", {{"name", one.call.name}, {"arguments", one.call.arguments}}}};
    if (has_index) json["index"] = one.index;
    all.push_back(std::move(json));
  }
  return all;
}

Json message_of(const ChoicePart& part) {
  Json message{{"role", "assistant"}, {"content", part.text}};
  if (!part.reasoning.empty()) message["reasoning_content"] = part.reasoning;
  if (part.calls.empty()) return message;
  message["tool_calls"] = calls_of(part.calls, false);
  if (part.text.empty()) message["content"] = nullptr;
  return message;
}

Json delta_of(const ChoicePart& part) {
  Json delta = Json::object();
  if (!part.text.empty()) delta["content"] = part.text;
  if (!part.reasoning.empty()) delta["reasoning_content"] = part.reasoning;
  if (!part.calls.empty()) delta["tool_calls"] = calls_of(part.calls, true);
  return delta;
}

/// What a whole choice and a chunk have in common.
Json choice_of(const ChoicePart& part) {
  Json choice{{"index", part.index}, {"finish_reason", nullptr}, {"logprobs", nullptr}};
  if (!part.finish_reason.empty()) choice["finish_reason"] = part.finish_reason;
  return choice;
}

}  // namespace

AnswerWriter::AnswerWriter(const ApiRequest& request, std::string model,
                           std::int64_t created_unix_s)
    : is_chat_(request.api == Api::Chat),
      has_logprobs_(request.submit.sampling.logprobs),
      include_usage_(request.include_usage),
      continuous_usage_(request.continuous_usage),
      id_((is_chat_ ? "chatcmpl-" : "cmpl-") + request.submit.request_id.value),
      model_(std::move(model)),
      created_(created_unix_s) {}

Json AnswerWriter::logprobs(const ChoicePart& part) const {
  if (!has_logprobs_) return nullptr;
  return is_chat_ ? chat_logprobs(part.logprobs) : completion_logprobs(part.logprobs);
}

Json AnswerWriter::object(std::string_view name, Json choices) const {
  return {{"id", id_},
          {"object", is_chat_ ? name : "text_completion"},
          {"created", created_},
          {"model", model_},
          {"choices", std::move(choices)}};
}

std::string AnswerWriter::whole(std::span<const ChoicePart> parts, UsageCount usage) const {
  Json choices = Json::array();
  for (const ChoicePart& part : parts) {
    Json choice = choice_of(part);
    choice["logprobs"] = logprobs(part);
    if (is_chat_) choice["message"] = message_of(part);
    if (!is_chat_) choice["text"] = part.text;
    choices.push_back(std::move(choice));
  }
  Json json = object("chat.completion", std::move(choices));
  json["usage"] = json_of(usage);
  return line_of(json);
}

std::string AnswerWriter::chunk(const ChoicePart& part, UsageCount so_far) const {
  Json choice = choice_of(part);
  if (!part.logprobs.empty()) choice["logprobs"] = logprobs(part);
  if (!is_chat_) choice["text"] = part.text;
  if (is_chat_) choice["delta"] = delta_of(part);
  Json json = object("chat.completion.chunk", Json::array({std::move(choice)}));
  if (continuous_usage_) json["usage"] = json_of(so_far);
  return line_of(json);
}

bool AnswerWriter::is_nothing(const ChoicePart& part) const {
  return is_chat_ && !continuous_usage_ && part.finish_reason.empty() && part.logprobs.empty() &&
         delta_of(part).empty();
}

std::optional<std::string> AnswerWriter::opening(std::uint32_t index) const {
  if (!is_chat_) return std::nullopt;
  const Json delta{{"role", "assistant"}, {"content", ""}};
  const Json choice{{"index", index}, {"delta", delta}, {"finish_reason", nullptr}};
  return line_of(object("chat.completion.chunk", Json::array({choice})));
}

std::optional<std::string> AnswerWriter::usage(UsageCount usage) const {
  if (!include_usage_) return std::nullopt;
  Json json = object("chat.completion.chunk", Json::array());
  json["usage"] = json_of(usage);
  return line_of(json);
}

std::string_view finish_reason(std::string_view completion_reason) {
  return completion_reason == "MaxTokensReached" ? "length" : "stop";
}

}  // namespace leasehold::http
