// Tenant ↔ worker: generate, tokens, the typed end.
#include "ipc/control/messages_tenant.hpp"

#include "ipc/control/message_limits.hpp"

namespace leasehold::wire {
namespace {

constexpr std::string_view kScopes[] = {"", "engine", "tenant"};

constexpr auto kSampling = [](auto& m, auto& fields) {
  fields.field("temperature", m.temperature, Between<float>{0.0f, 100.0f});
  fields.field("seed", m.seed);
};

constexpr auto kGenerate = [](auto& m, auto& fields) {
  fields.field("token", m.token, TextRule::Filled);
  fields.field("request_id", m.request_id);
  fields.field("prompt", m.prompt);
  fields.field("prompt_tokens", m.prompt_tokens, kTokenIds);
  fields.field("emitted", m.emitted, kTokenIds);
  fields.field("rebound_from", m.rebound_from);
  fields.object("sampling", m.sampling, kSampling);
  fields.field("max_emitted_tokens", m.max_emitted_tokens, Between<std::uint32_t>{1, 1u << 20});
  fields.field("ignore_eos", m.ignore_eos);
  fields.field("deadline_ms", m.deadline_ms, kUpToADay_ms);
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
};

constexpr auto kRequestCompleted = [](auto& m, auto& fields) {
  fields.field("request", m.request);
  fields.field("reason", m.reason, TextRule::Filled);
  fields.field("emitted_tokens", m.emitted_tokens);
  fields.field("lease", m.lease);
  fields.field("scope", m.scope, Choice{kScopes});
  fields.field("revoke_reason", m.revoke_reason, TextRule::RevokeReasonOrEmpty);
  fields.field("detail", m.detail);
};

constexpr auto kCancel = [](auto& m, auto& fields) { fields.field("request_id", m.request_id); };

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

Json Cancel::to_json() const {
  return write_fields(*this, kCancel);
}
Result<Cancel> Cancel::from_json(const Json& json) {
  return read_fields<Cancel>(json, kCancel);
}

Json Generate::to_json() const {
  return write_fields(*this, kGenerate);
}
Result<Generate> Generate::from_json(const Json& json) {
  auto message = read_fields<Generate>(json, kGenerate);
  if (message && message->prompt.has_value() == message->prompt_tokens.has_value()) {
    return fail(Errc::BadRequest,
                message->prompt
                    ? "expected exactly one of 'prompt' and 'prompt_tokens', got both"
                    : "expected exactly one of 'prompt' and 'prompt_tokens', got neither");
  }
  return message;
}

}  // namespace leasehold::wire
