// Tenant ↔ worker: generate, tokens, the typed end.
#include "ipc/control/messages_tenant.hpp"

#include <charconv>

#include "ipc/control/message_limits.hpp"

namespace leasehold::wire {

// ---------------------------------------------------------------- values of several shapes

static Problem from_field(const Json& json, StringList& out) {
  if (!json.is_string()) return leasehold::from_field(json, out.all, TextRule::Any);
  out.all = {json.get<std::string>()};
  return {};
}

static Json to_field(const StringList& texts) {
  return texts.all;
}

static Problem from_field(const Json& json, TokenBiases& out) {
  if (!json.is_object()) return mismatch(json, "an object of token ids and biases");
  out.by_token.clear();
  for (const auto& [key, value] : json.items()) {
    std::int32_t token = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), token);
    // Written back and compared: one token has one spelling.
    if (error != std::errc{} || token < 0 || std::to_string(token) != key)
      return mismatch(key, "a token id written as text");
    if (Problem problem = leasehold::from_field(value, out.by_token[token], Between<float>{})) {
      problem->where = key;
      return problem;
    }
  }
  return {};
}

static Json to_field(const TokenBiases& biases) {
  Json json = Json::object();
  for (const auto& [token, bias] : biases.by_token) json[std::to_string(token)] = bias;
  return json;
}

static Problem from_field(const Json& json, ResponseFormat& out) {
  static constexpr std::string_view kTypes[] = {"text", "json_object", "json_schema"};
  if (!json.is_object()) return mismatch(json, "an object");
  const auto within = [](const char* where, Problem problem) {
    problem->where = where;
    return problem;
  };
  const Json type = json.value("type", Json());
  if (Problem problem = leasehold::from_field(type, out.type, Choice{kTypes}))
    return within("type", std::move(problem));
  out.schema.clear();
  if (out.type != "json_schema") return {};
  const Json described = json.value("json_schema", Json());
  const Json schema = described.is_object() ? described.value("schema", Json()) : Json();
  if (schema.is_string()) {
    out.schema = schema.get<std::string>();
  } else if (schema.is_object()) {
    out.schema = schema.dump();
  } else {
    return within("json_schema.schema", mismatch(schema, "a schema, as an object or as its text"));
  }
  return {};
}

static Json to_field(const ResponseFormat& format) {
  Json json{{"type", format.type}};
  if (format.type == "json_schema") json["json_schema"]["schema"] = format.schema;
  return json;
}

static Problem from_field(const Json& json, TokenLogprob& out) {
  constexpr auto kFields = [](auto& m, auto& fields) {
    fields.field("token", m.token, kTokenIds);
    fields.field("logprob", m.logprob, Between<float>{});
  };
  const auto read = read_fields<TokenLogprob>(json, kFields);
  if (!read) return mismatch(json, "a token and its logprob");
  out = *read;
  return {};
}

static Json to_field(const TokenLogprob& value) {
  return {{"token", value.token}, {"logprob", value.logprob}};
}

// ---------------------------------------------------------------- messages

namespace {

constexpr std::string_view kScopes[] = {"", "engine", "tenant"};

constexpr Between<float> kFinite{};

constexpr auto kSampling = [](auto& m, auto& fields) {
  fields.field("temperature", m.temperature, Between<float>{0.0f, 100.0f});
  fields.field("seed", m.seed);
  fields.with_default("top_k", m.top_k, 0u);
  fields.with_default("top_p", m.top_p, 1.0f, kFinite);
  fields.with_default("min_p", m.min_p, 0.0f, kFinite);
  fields.with_default("typical_p", m.typical_p, 1.0f, kFinite);
  fields.with_default("repetition_penalty", m.repetition_penalty, 1.0f, kFinite);
  fields.with_default("presence_penalty", m.presence_penalty, 0.0f, kFinite);
  fields.with_default("frequency_penalty", m.frequency_penalty, 0.0f, kFinite);
  fields.with_default("penalty_window", m.penalty_window, 0u);
  fields.with_default("logit_bias", m.logit_bias, TokenBiases{});
  fields.with_default("logprobs", m.logprobs, false);
  fields.with_default("top_logprobs", m.top_logprobs, 0u);
  fields.with_default("stop", m.stop, StringList{});
  fields.with_default("stop_token_ids", m.stop_token_ids, std::vector<std::int32_t>{}, kTokenIds);
  fields.with_default("response_format", m.response_format, ResponseFormat{});
  fields.with_default("grammar", m.grammar, std::string());
};

constexpr auto kChatMessage = [](auto& m, auto& fields) {
  fields.field("role", m.role, TextRule::NonEmpty);
  fields.field("content", m.content);
};

constexpr auto kGenerate = [](auto& m, auto& fields) {
  fields.field("token", m.token, TextRule::NonEmpty);
  fields.field("request_id", m.request_id);
  fields.field("prompt", m.prompt);
  fields.field("prompt_tokens", m.prompt_tokens, kTokenIds);
  fields.objects("messages", m.messages, kChatMessage);
  fields.field("asked_at_unix_s", m.asked_at_unix_s, kUnixTime_s);
  fields.field("emitted", m.emitted, kTokenIds);
  fields.field("rebound_from", m.rebound_from);
  fields.object("sampling", m.sampling, kSampling);
  fields.field("max_emitted_tokens", m.max_emitted_tokens, Between<std::uint32_t>{1, 1u << 20});
  fields.field("ignore_eos", m.ignore_eos);
  fields.field("deadline_ms", m.deadline_ms, kUpToOneDay_ms);
};

constexpr auto kGenerating = [](auto& m, auto& fields) {
  fields.field("request", m.request);
  fields.field("prompt_tokens", m.prompt_tokens);
};

constexpr auto kTokenEmitted = [](auto& m, auto& fields) {
  fields.field("request", m.request);
  fields.field("token", m.token, kTokenIds);
  fields.field("position", m.position);
  fields.field("text", m.text);
  fields.field("logprob", m.logprob, kFinite);
  fields.with_default("top_logprobs", m.top_logprobs, std::vector<TokenLogprob>{});
};

constexpr auto kRequestCompleted = [](auto& m, auto& fields) {
  fields.field("request", m.request);
  fields.field("reason", m.reason, TextRule::NonEmpty);
  fields.field("emitted_tokens", m.emitted_tokens);
  fields.field("lease", m.lease);
  fields.field("scope", m.scope, Choice{kScopes});
  fields.field("revoke_reason", m.revoke_reason, TextRule::RevokeReasonOrEmpty);
  fields.field("detail", m.detail);
  fields.with_default("text", m.text, std::string());
};

constexpr auto kRequestCancel = [](auto& m, auto& fields) {
  fields.field("request_id", m.request_id);
};

}  // namespace

Json Sampling::to_json() const {
  return write_fields(*this, kSampling);
}
Result<Sampling> Sampling::from_json(const Json& json) {
  return read_fields<Sampling>(json, kSampling);
}

Json Generating::to_json() const {
  return write_fields(*this, kGenerating);
}
Result<Generating> Generating::from_json(const Json& json) {
  return read_fields<Generating>(json, kGenerating);
}

Json TokenEmitted::to_json() const {
  return write_fields(*this, kTokenEmitted);
}
Result<TokenEmitted> TokenEmitted::from_json(const Json& json) {
  return read_fields<TokenEmitted>(json, kTokenEmitted);
}

Json RequestCompleted::to_json() const {
  return write_fields(*this, kRequestCompleted);
}
Result<RequestCompleted> RequestCompleted::from_json(const Json& json) {
  return read_fields<RequestCompleted>(json, kRequestCompleted);
}

Json RequestCancel::to_json() const {
  return write_fields(*this, kRequestCancel);
}
Result<RequestCancel> RequestCancel::from_json(const Json& json) {
  return read_fields<RequestCancel>(json, kRequestCancel);
}

Json Generate::to_json() const {
  return write_fields(*this, kGenerate);
}
Result<Generate> Generate::from_json(const Json& json) {
  auto message = read_fields<Generate>(json, kGenerate);
  if (!message) return message;
  const int prompts =
      (message->prompt ? 1 : 0) + (message->prompt_tokens ? 1 : 0) + (message->messages ? 1 : 0);
  if (prompts == 1) return message;
  return fail(Errc::BadRequest,
              "expected exactly one of 'prompt', 'prompt_tokens' and 'messages', got " +
                  std::string(prompts == 0 ? "none" : "more"));
}

}  // namespace leasehold::wire
