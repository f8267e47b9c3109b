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

}  // namespace

AnswerWriter::AnswerWriter(const ApiRequest& request, std::string model,
                           std::int64_t created_unix_s)
    : is_chat_(request.api == Api::Chat),
      include_usage_(request.include_usage),
      continuous_usage_(request.continuous_usage),
      id_((is_chat_ ? "chatcmpl-" : "cmpl-") + request.submit.request_id.value),
      model_(std::move(model)),
      created_(created_unix_s) {}

std::string AnswerWriter::whole(std::string_view text, std::string_view finish_reason,
                                UsageCount usage) const {
  Json choice{{"index", 0}, {"logprobs", nullptr}, {"finish_reason", finish_reason}};
  if (is_chat_) choice["message"] = {{"role", "assistant"}, {"content", text}};
  if (!is_chat_) choice["text"] = text;
  return line_of({{"id", id_},
                  {"object", is_chat_ ? "chat.completion" : "text_completion"},
                  {"created", created_},
                  {"model", model_},
                  {"choices", Json::array({std::move(choice)})},
                  {"usage", json_of(usage)}});
}

std::string AnswerWriter::chunk(std::string_view text,
                                std::optional<std::string_view> finish_reason,
                                std::optional<UsageCount> usage) const {
  Json choice{{"index", 0}, {"logprobs", nullptr}, {"finish_reason", nullptr}};
  if (finish_reason) choice["finish_reason"] = *finish_reason;
  if (!is_chat_) choice["text"] = text;
  if (is_chat_) choice["delta"] = Json::object();
  if (is_chat_ && !text.empty()) choice["delta"]["content"] = text;
  Json json{{"id", id_},
            {"object", is_chat_ ? "chat.completion.chunk" : "text_completion"},
            {"created", created_},
            {"model", model_},
            {"choices", Json::array({std::move(choice)})}};
  if (usage && continuous_usage_) json["usage"] = json_of(*usage);
  return line_of(json);
}

std::optional<std::string> AnswerWriter::opening() const {
  if (!is_chat_) return std::nullopt;
  const Json delta{{"role", "assistant"}, {"content", ""}};
  const Json choice{{"index", 0}, {"delta", delta}, {"finish_reason", nullptr}};
  return line_of({{"id", id_},
                  {"object", "chat.completion.chunk"},
                  {"created", created_},
                  {"model", model_},
                  {"choices", Json::array({choice})}});
}

std::string AnswerWriter::text(std::string_view text, UsageCount so_far) const {
  return chunk(text, std::nullopt, so_far);
}

std::string AnswerWriter::end(std::string_view text, std::string_view finish_reason,
                              UsageCount usage) const {
  return chunk(text, finish_reason, usage);
}

std::optional<std::string> AnswerWriter::usage(UsageCount usage) const {
  if (!include_usage_) return std::nullopt;
  return line_of({{"id", id_},
                  {"object", is_chat_ ? "chat.completion.chunk" : "text_completion"},
                  {"created", created_},
                  {"model", model_},
                  {"choices", Json::array()},
                  {"usage", json_of(usage)}});
}

std::string_view finish_reason(std::string_view completion_reason) {
  return completion_reason == "MaxTokensReached" ? "length" : "stop";
}

}  // namespace leasehold::http
