// Tenant ↔ worker: requests, tokens, completion.
#include "ipc/control/messages/tenant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "common/trace_context.hpp"
#include "ipc/control/messages/codec.hpp"
#include "ipc/control/messages/limits.hpp"

namespace leasehold::wire {

// ---------------------------------------------------------------- values with several JSON forms

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
    // Written back and compared, so that each token id has one spelling.
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

static Problem within(const char* where, Problem problem) {
  problem->where = where;
  return problem;
}

static Problem from_field(const Json& json, ResponseFormat& out) {
  static constexpr std::string_view kTypes[] = {"text", "json_object", "json_schema"};
  if (!json.is_object()) return mismatch(json, "an object");
  const Json type = json.value("type", Json());
  if (Problem problem = leasehold::from_field(type, out.type, Choice{kTypes}))
    return within("type", std::move(problem));
  out.schema.clear();
  out.strict = true;
  const auto described = json.find("json_schema");
  const bool is_described = described != json.end() && described->is_object();
  const auto strict = is_described ? described->find("strict") : json.end();
  const bool has_strict = is_described && strict != described->end() && !strict->is_null();
  if (out.type != "json_schema") {
    if (!has_strict) return {};
    return within("json_schema.strict", mismatch(*strict, "nothing unless type is json_schema"));
  }
  const Json schema = is_described ? described->value("schema", Json()) : Json();
  if (schema.is_string()) {
    out.schema = schema.get<std::string>();
  } else if (schema.is_object()) {
    out.schema = schema.dump();
  } else {
    return within("json_schema.schema", mismatch(schema, "a schema, as an object or as its text"));
  }
  if (!has_strict) return {};
  if (Problem problem = leasehold::from_field(*strict, out.strict))
    return within("json_schema.strict", std::move(problem));
  return {};
}

static Json to_field(const ResponseFormat& format) {
  Json json{{"type", format.type}};
  if (format.type != "json_schema") return json;
  json["json_schema"]["schema"] = format.schema;
  if (!format.strict) json["json_schema"]["strict"] = false;
  return json;
}

void describe(Is<TokenLogprob> auto& m, auto& fields) {
  fields.field("token", m.token, kTokenIds);
  fields.field("logprob", m.logprob, Between<float>{});
}

static Problem from_field(const Json& json, TokenLogprob& out) {
  const auto read = read_fields<TokenLogprob>(json);
  if (!read) return mismatch(json, "a token and its logprob");
  out = *read;
  return {};
}

void describe(Is<PromptToken> auto& m, auto& fields) {
  fields.field("token", m.token, kTokenIds);
  fields.field("logprob", m.logprob, Between<float>{});
  fields.with_default("top_logprobs", m.top_logprobs, std::vector<TokenLogprob>{});
}

// ---------------------------------------------------------------- messages

constexpr std::string_view kScopes[] = {"", "engine", "tenant", "shared", "adapter"};
constexpr std::string_view kPreemptionCauses[] = {"PoolExhausted", "QuotaBlocks"};

constexpr Between<float> kFinite{};

void describe(Is<Sampling> auto& m, auto& fields) {
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
  fields.with_default("include_stop_str_in_output", m.include_stop_str_in_output, false);
  fields.with_default("stop_token_ids", m.stop_token_ids, std::vector<std::int32_t>{}, kTokenIds);
  fields.with_default("min_tokens", m.min_tokens, 0u);
  fields.with_default("response_format", m.response_format, ResponseFormat{});
  fields.with_default("grammar", m.grammar, std::string());
  fields.with_default("regex", m.regex, std::string());
}

void describe(Is<ConnectionAuthenticate> auto& m, auto& fields) {
  fields.field("token", m.token, TextRule::NonEmpty);
}

void describe(Is<ChatMessage> auto& m, auto& fields) {
  fields.field("role", m.role, TextRule::NonEmpty);
  fields.field("content", m.content);
  fields.with_default("tool_calls", m.tool_calls, std::string());
  fields.with_default("tool_call_id", m.tool_call_id, std::string());
  fields.with_default("name", m.name, std::string());
  fields.with_default("reasoning_content", m.reasoning_content, std::string());
}

constexpr Between<std::int32_t> kPriority{-RequestSubmit::kMaxPriority,
                                          RequestSubmit::kMaxPriority};

constexpr std::string_view kPoolings[] = {"", "last", "mean"};

void describe(Is<Embedding> auto& m, auto& fields) {
  fields.with_default("pooling", m.pooling, std::string(), Choice{kPoolings});
  fields.with_default("dimensions", m.dimensions, 0u);
}

void describe(Is<RequestSubmit> auto& m, auto& fields) {
  fields.field("token", m.token, TextRule::NonEmpty);
  fields.field("request_id", m.request_id);
  fields.field("prompt", m.prompt);
  fields.with_default("parse_special", m.parse_special, false);
  fields.field("prompt_tokens", m.prompt_tokens, kTokenIds);
  fields.field("messages", m.messages);
  fields.with_default("tools", m.tools, std::string());
  fields.with_default("chat_template_kwargs", m.chat_template_kwargs, std::string());
  fields.with_default("add_generation_prompt", m.add_generation_prompt, true);
  fields.with_default("continue_final_message", m.continue_final_message, false);
  fields.field("asked_at_unix_s", m.asked_at_unix_s, kUnixTime_s);
  fields.field("emitted", m.emitted, kTokenIds);
  fields.field("rebound_from", m.rebound_from);
  fields.field("sampling", m.sampling);
  fields.field("max_emitted_tokens", m.max_emitted_tokens, Between<std::uint32_t>{0, 1u << 20});
  fields.field("prompt_logprobs", m.prompt_logprobs, Between<std::uint32_t>{0, 20});
  fields.with_default("received_prompt_positions", m.received_prompt_positions, 0u);
  fields.field("embedding", m.embedding);
  fields.field("ignore_eos", m.ignore_eos);
  fields.field("deadline_ms", m.deadline_ms, kUpToOneDay_ms);
  fields.with_default("priority", m.priority, 0, kPriority);
  fields.with_default("resumable", m.resumable, false);
  fields.with_default("may_shorten", m.may_shorten, false);
  fields.with_default("x_request_id", m.x_request_id, std::string());
  fields.with_default("traceparent", m.traceparent, std::string());
  fields.with_default("adapter", m.adapter, std::string(), TextRule::NameOrEmpty);
  fields.with_default("adapter_digest", m.adapter_digest, std::string(), TextRule::HexKey);
}

bool is_x_request_id(std::string_view text) {
  constexpr std::size_t kMaxBytes = 128;
  return !text.empty() && text.size() <= kMaxBytes &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
}

static Result<void> validate_embedding(const RequestSubmit& m) {
  const auto refuse = [](std::string_view field, std::string_view expected) {
    return fail(Errc::BadRequest,
                fmt::format("field '{}': expected {} beside embedding", field, expected));
  };
  if (m.max_emitted_tokens > 0) return refuse("max_emitted_tokens", "0");
  if (!m.emitted.empty()) return refuse("emitted", "no tokens");
  if (m.prompt_logprobs) return refuse("prompt_logprobs", "none");
  if (m.resumable) return refuse("resumable", "false");
  if (!m.adapter.empty()) return refuse("adapter", "none");
  return {};
}

static Result<void> validate(const RequestSubmit& m) {
  if (m.embedding) TRY(validate_embedding(m));
  if (m.continue_final_message && m.add_generation_prompt)
    return fail(Errc::BadRequest,
                "field 'add_generation_prompt': expected false beside continue_final_message");
  if (m.resumable && m.prompt_logprobs)
    return fail(Errc::BadRequest, "field 'prompt_logprobs': expected none beside resumable");
  if (!m.x_request_id.empty() && !is_x_request_id(m.x_request_id))
    return fail(Errc::BadRequest,
                "field 'x_request_id': expected at most 128 visible ASCII characters");
  if (!m.traceparent.empty() && !TraceContext::parse(m.traceparent))
    return fail(Errc::BadRequest,
                "field 'traceparent': expected a value as W3C Trace Context defines it, such as "
                "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  return exactly_one("'prompt', 'prompt_tokens' and 'messages'",
                     {m.prompt.has_value(), m.prompt_tokens.has_value(), m.messages.has_value()});
}

void describe(Is<RequestSubmitted> auto& m, auto& fields) {
  fields.field("request", m.request);
  fields.field("prompt_tokens", m.prompt_tokens);
  fields.with_default("unchecked", m.unchecked, std::vector<std::string>{},
                      MaxItems{RequestSubmitted::kMaxUnchecked}, TextRule::Label);
  fields.with_default("unchecked_omitted", m.unchecked_omitted, 0u);
  fields.with_default("max_emitted_tokens", m.max_emitted_tokens, 0u,
                      Between<std::uint32_t>{0, 1u << 20});
  fields.with_default("adapter_digest", m.adapter_digest, std::string(), TextRule::HexKey);
}

void describe(Is<TokenEmitted> auto& m, auto& fields) {
  fields.field("request", m.request);
  fields.field("token", m.token, kTokenIds);
  fields.field("position", m.position);
  fields.field("text", m.text);
  fields.field("logprob", m.logprob, kFinite);
  fields.with_default("top_logprobs", m.top_logprobs, std::vector<TokenLogprob>{});
}

void describe(Is<PromptLogprobs> auto& m, auto& fields) {
  fields.field("request", m.request);
  fields.field("position", m.position);
  fields.field("tokens", m.tokens);
}

void describe(Is<RequestPreempted> auto& m, auto& fields) {
  fields.field("request", m.request);
  fields.field("cause", m.cause, Choice{kPreemptionCauses});
  fields.field("freed_blocks", m.freed_blocks);
  fields.may_be_missing("swapped_blocks", m.swapped_blocks);
  fields.field("emitted_tokens", m.emitted_tokens);
}

void describe(Is<RequestCompleted> auto& m, auto& fields) {
  fields.field("request", m.request);
  fields.field("reason", m.reason, TextRule::NonEmpty);
  fields.field("emitted_tokens", m.emitted_tokens);
  fields.field("lease", m.lease);
  fields.field("scope", m.scope, Choice{kScopes});
  fields.field("revoke_reason", m.revoke_reason, TextRule::RevokeReasonOrEmpty);
  fields.field("detail", m.detail);
  fields.with_default("text", m.text, std::string());
  fields.with_default("retry_after_ms", m.retry_after_ms, std::int64_t{0}, kUpToOneDay_ms);
  fields.field("cached_tokens", m.cached_tokens);
  fields.with_default("embedding", m.embedding, std::string());
}

void describe(Is<RequestCancel> auto& m, auto& fields) {
  fields.field("request_id", m.request_id);
}

void describe(Is<RequestMove> auto& m, auto& fields) {
  fields.field("request_id", m.request_id);
  fields.field("token", m.token, TextRule::NonEmpty);
}

void describe(Is<RequestMoved> auto& m, auto& fields) {
  fields.field("request", m.request);
  fields.field("lease", m.lease);
  fields.field("blocks", m.blocks);
}

void describe(Is<RequestResume> auto& m, auto& fields) {
  fields.field("request_id", m.request_id);
  fields.field("after_position", m.after_position);
}

template struct Message<Sampling>;
template struct Message<ConnectionAuthenticate>;
template struct Message<RequestSubmit>;
template struct Message<RequestSubmitted>;
template struct Message<TokenEmitted>;
template struct Message<PromptLogprobs>;
template struct Message<RequestPreempted>;
template struct Message<RequestCompleted>;
template struct Message<RequestCancel>;
template struct Message<RequestMove>;
template struct Message<RequestMoved>;
template struct Message<RequestResume>;

}  // namespace leasehold::wire
