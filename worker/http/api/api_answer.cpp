#include "worker/http/api/api_answer.hpp"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/cli/terminal_text.hpp"
#include "ipc/control/messages/json_text.hpp"
#include "worker/http/api/messages_answer.hpp"
#include "worker/http/api/responses_answer.hpp"

namespace leasehold::http {
namespace {

using Json = nlohmann::json;

/// Escapes control characters, because users read answers in terminals.
std::string json_string(std::string_view text) {
  return escape_controls(control::json_string(text));
}

constexpr std::string_view kChunk = "chat.completion.chunk";
constexpr std::string_view kBeforeChoices = R"({"choices":[)";

/// True if the part has no finish reason, no calls and no logprobs.
bool has_no_extras(const ChoicePart& part) {
  return part.finish_reason.empty() && part.calls.empty() && part.logprobs.empty();
}

Json json_of(UsageCount usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
}

Json chat_logprob(const TextLogprob& token) {
  Json bytes = Json::array();
  for (const char c : token.text) bytes.push_back(static_cast<unsigned char>(c));
  return {{"token", token.text}, {"logprob", token.logprob}, {"bytes", std::move(bytes)}};
}

/// Replaces invalid UTF-8 before the text becomes a key. If it were replaced in the output, two
/// keys of an object could become equal.
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
    json["text_offset"].push_back(token.text_offset);
    if (token.is_first) {
      json["token_logprobs"].push_back(nullptr);
      json["top_logprobs"].push_back(nullptr);
      continue;
    }
    json["token_logprobs"].push_back(token.token.logprob);
    Json top = Json::object();
    for (const TextLogprob& one : token.top) top.emplace(key_of(one.text), one.logprob);
    json["top_logprobs"].push_back(std::move(top));
  }
  return json;
}

/// vLLM's form: an object for each position, by token id, and null for the first one.
Json prompt_logprobs_json(std::span<const PromptPosition> positions) {
  Json all = Json::array();
  for (const PromptPosition& position : positions) {
    Json json = position.empty() ? Json(nullptr) : Json::object();
    for (const PromptCandidate& one : position) {
      Json& entry = json[std::to_string(one.token)];
      entry = {{"logprob", one.text.logprob}, {"rank", nullptr}, {"decoded_token", one.text.text}};
      if (one.rank > 0) entry["rank"] = one.rank;
    }
    all.push_back(std::move(json));
  }
  return all;
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

/// `delta_of` as serialized JSON. Precondition: the part has no calls.
std::string delta_text(const ChoicePart& part) {
  std::string line = "{";
  if (!part.text.empty()) line.append(R"("content":)").append(json_string(part.text));
  if (!part.text.empty() && !part.reasoning.empty()) line += ',';
  if (!part.reasoning.empty())
    line.append(R"("reasoning_content":)").append(json_string(part.reasoning));
  return line += '}';
}

/// The members that a whole choice and a chunk share.
Json choice_of(const ChoicePart& part) {
  Json choice{{"index", part.index}, {"finish_reason", nullptr}, {"logprobs", nullptr}};
  if (!part.finish_reason.empty()) choice["finish_reason"] = part.finish_reason;
  return choice;
}

/// Writes the answers of completions and chats.
class ChoicesWriter final : public AnswerWriter {
 public:
  ChoicesWriter(const ApiRequest& request, std::string model, std::int64_t created_unix_s)
      : is_chat_(request.api == Api::Chat),
        is_stream_(request.stream),
        has_logprobs_(request.submit.sampling.logprobs),
        has_prompt_logprobs_(request.prompt_logprobs),
        include_usage_(request.include_usage),
        continuous_usage_(request.continuous_usage),
        id_(answer_id(request)),
        model_(std::move(model)),
        created_(created_unix_s),
        after_choices_(line_of(object(kChunk, Json::array())).substr(kBeforeChoices.size())),
        choices_(choices_of(request)) {
    after_choices_.pop_back();  // the closing brace of the object
    if (include_usage_ && !continuous_usage_) after_choices_ += R"(,"usage":null)";
  }

  ServerEvents add(ChoicePart part, UsageCount so_far) override;
  ServerEvents end(UsageCount usage) override;
  ServerEvents failed(const Error& error) override {
    return {{.data = error_body({error})}, {.data = std::string(kDone)}};
  }
  std::string whole(UsageCount usage) override;

 private:
  struct Choice {
    bool began = false;  ///< Its first chunk was sent.
    ChoicePart whole;    ///< Unused if the answer streams.
  };

  Json logprobs(const ChoicePart& part) const;
  Json object(std::string_view name, Json choices) const;
  void add_usage(Json& chunk, UsageCount so_far) const;
  std::string opening(std::uint32_t index, UsageCount so_far) const;
  std::string chunk(const ChoicePart& part, UsageCount so_far) const;
  std::string text_chunk(const ChoicePart& part, UsageCount so_far) const;
  bool is_nothing(const ChoicePart& part) const;

  bool is_chat_;
  bool is_stream_;
  bool has_logprobs_;
  bool has_prompt_logprobs_;
  bool include_usage_;
  bool continuous_usage_;
  std::string id_;
  std::string model_;
  std::int64_t created_;
  /// What follows the choices in every chunk, from ']' on, without the last '}'.
  std::string after_choices_;
  std::vector<Choice> choices_;
};

Json ChoicesWriter::logprobs(const ChoicePart& part) const {
  if (!has_logprobs_) return nullptr;
  if (!is_chat_) return completion_logprobs(part.logprobs);
  return {{"content", logprobs_json(part.logprobs)}, {"refusal", nullptr}};
}

Json ChoicesWriter::object(std::string_view name, Json choices) const {
  return {{"id", id_},
          {"object", is_chat_ ? name : "text_completion"},
          {"created", created_},
          {"model", model_},
          {"choices", std::move(choices)}};
}

ServerEvents ChoicesWriter::add(ChoicePart part, UsageCount so_far) {
  Choice& choice = choices_[part.index];
  if (!is_stream_) {
    append(choice.whole, std::move(part));
    return {};
  }
  ServerEvents events;
  if (!std::exchange(choice.began, true) && is_chat_)
    events.push_back({.data = opening(part.index, so_far)});
  if (!is_nothing(part)) events.push_back({.data = chunk(part, so_far)});
  return events;
}

ServerEvents ChoicesWriter::end(UsageCount usage) {
  if (!is_stream_) return {};
  ServerEvents events;
  if (include_usage_) {
    Json json = object(kChunk, Json::array());
    json["usage"] = json_of(usage);
    events.push_back({.data = line_of(json)});
  }
  events.push_back({.data = std::string(kDone)});
  return events;
}

std::string ChoicesWriter::whole(UsageCount usage) {
  Json choices = Json::array();
  for (const Choice& ended : choices_) {
    const ChoicePart& part = ended.whole;
    Json choice = choice_of(part);
    choice["logprobs"] = logprobs(part);
    if (is_chat_) choice["message"] = message_of(part);
    if (!is_chat_) choice["text"] = part.text;
    if (!is_chat_ && has_prompt_logprobs_)
      choice["prompt_logprobs"] = prompt_logprobs_json(part.prompt_logprobs);
    choices.push_back(std::move(choice));
  }
  Json json = object("chat.completion", std::move(choices));
  if (is_chat_ && has_prompt_logprobs_)
    json["prompt_logprobs"] = prompt_logprobs_json(choices_.front().whole.prompt_logprobs);
  json["usage"] = json_of(usage);
  return line_of(json);
}

std::string ChoicesWriter::chunk(const ChoicePart& part, UsageCount so_far) const {
  if (has_no_extras(part)) return text_chunk(part, so_far);
  Json choice = choice_of(part);
  if (!part.logprobs.empty()) choice["logprobs"] = logprobs(part);
  if (!is_chat_) choice["text"] = part.text;
  if (is_chat_) choice["delta"] = delta_of(part);
  Json json = object(kChunk, Json::array({std::move(choice)}));
  add_usage(json, so_far);
  return line_of(json);
}

/// If only the last chunk has the usage, the other chunks have a null field, as OpenAI's have.
void ChoicesWriter::add_usage(Json& chunk, UsageCount so_far) const {
  if (continuous_usage_) {
    chunk["usage"] = json_of(so_far);
  } else if (include_usage_) {
    chunk["usage"] = nullptr;
  }
}

/// Writes the bytes that the JSON library would write, without building a tree of objects for each
/// token.
std::string ChoicesWriter::text_chunk(const ChoicePart& part, UsageCount so_far) const {
  std::string line(kBeforeChoices);
  line += '{';
  if (is_chat_) line.append(R"("delta":)").append(delta_text(part)).append(",");
  line += R"("finish_reason":null,"index":)";
  line.append(std::to_string(part.index)).append(R"(,"logprobs":null)");
  if (!is_chat_) line.append(R"(,"text":)").append(json_string(part.text));
  line.append("}").append(after_choices_);
  if (continuous_usage_) line.append(R"(,"usage":)").append(line_of(json_of(so_far)));
  return line += '}';
}

/// True if a chunk of the part would contain nothing new.
bool ChoicesWriter::is_nothing(const ChoicePart& part) const {
  return is_chat_ && !continuous_usage_ && has_no_extras(part) && part.text.empty() &&
         part.reasoning.empty();
}

/// The first chunk of a chat's choice, which has the role.
std::string ChoicesWriter::opening(std::uint32_t index, UsageCount so_far) const {
  const Json delta{{"role", "assistant"}, {"content", ""}};
  const Json choice{{"index", index}, {"delta", delta}, {"finish_reason", nullptr}};
  Json json = object(kChunk, Json::array({choice}));
  add_usage(json, so_far);
  return line_of(json);
}

}  // namespace

std::string answer_id(const ApiRequest& request) {
  const std::string& id = request.submit.request_id.value;
  if (request.api == Api::Responses) return "resp_" + id;
  if (request.api == Api::Messages) return "msg_" + id;
  return (request.api == Api::Chat ? "chatcmpl-" : "cmpl-") + id;
}

std::unique_ptr<AnswerWriter> answer_writer(const ApiRequest& request, std::string model,
                                            std::int64_t created_unix_s) {
  if (request.api == Api::Messages)
    return std::make_unique<MessageWriter>(request, std::move(model));
  if (request.api == Api::Responses)
    return std::make_unique<ResponseWriter>(request, std::move(model), created_unix_s);
  return std::make_unique<ChoicesWriter>(request, std::move(model), created_unix_s);
}

Json logprobs_json(std::span<const TokenLogprobs> tokens) {
  Json all = Json::array();
  for (const TokenLogprobs& token : tokens) {
    Json entry = chat_logprob(token.token);
    entry["top_logprobs"] = Json::array();
    for (const TextLogprob& top : token.top) entry["top_logprobs"].push_back(chat_logprob(top));
    all.push_back(std::move(entry));
  }
  return all;
}

std::string line_of(const Json& json) {
  return escape_controls(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void append(ChoicePart& whole, ChoicePart part) {
  whole.index = part.index;
  whole.text += part.text;
  whole.reasoning += part.reasoning;
  std::ranges::move(part.calls, std::back_inserter(whole.calls));
  std::ranges::move(part.logprobs, std::back_inserter(whole.logprobs));
  std::ranges::move(part.prompt_logprobs, std::back_inserter(whole.prompt_logprobs));
  whole.finish_reason = part.finish_reason;
  whole.stop = std::move(part.stop);
}

std::string_view finish_reason(std::string_view completion_reason) {
  const bool is_cut = completion_reason == "MaxTokensReached" || completion_reason == "ContextFull";
  return is_cut ? "length" : "stop";
}

}  // namespace leasehold::http
