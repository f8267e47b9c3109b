#include "tools/tenant/printer.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "common/cli/print_error.hpp"
#include "ipc/control/messages/embedding_text.hpp"

namespace leasehold::tenant {
namespace {

using namespace client;

using wire::Json;

constexpr std::string_view kProgram = "leasehold-tenant";

Json event_json(const Acquired& event) {
  Json json{{"event", "acquired"},    {"lease", to_string(event.lease)},
            {"worker", event.worker}, {"blocks", event.blocks},
            {"ttl_ms", event.ttl_ms}, {"deadline_boottime_ns", event.deadline_boottime_ns}};
  if (event.replaces) json["replaces"] = to_string(*event.replaces);
  if (event.adopted_blocks > 0) json["adopted_blocks"] = event.adopted_blocks;
  return json;
}

Json event_json(const Submitted& event) {
  Json json{{"event", "submitted"},
            {"lease", to_string(event.lease)},
            {"prompt_tokens", event.prompt_tokens}};
  if (!event.unchecked.empty()) json["unchecked"] = event.unchecked;
  if (event.unchecked_omitted > 0) json["unchecked_omitted"] = event.unchecked_omitted;
  return json;
}

Json top_json(const std::vector<wire::TokenLogprob>& all) {
  Json json = Json::array();
  for (const wire::TokenLogprob& top : all)
    json.push_back({{"token", top.token}, {"logprob", top.logprob}});
  return json;
}

Json event_json(const PromptLogprobsArrived& event) {
  Json tokens = Json::array();
  for (const wire::PromptToken& each : event.logprobs.tokens) {
    Json token{{"token", each.token}};
    if (each.logprob) token["logprob"] = *each.logprob;
    if (each.logprob) token["top_logprobs"] = top_json(each.top_logprobs);
    tokens.push_back(std::move(token));
  }
  return {{"event", "prompt_logprobs"},
          {"position", event.logprobs.position},
          {"tokens", std::move(tokens)}};
}

Json event_json(const TokenArrived& event) {
  Json json{{"event", "token"},
            {"lease", to_string(event.lease)},
            {"position", event.token.position},
            {"token", event.token.token},
            {"text", event.token.text}};
  if (!event.token.logprob) return json;
  json["logprob"] = *event.token.logprob;
  json["top_logprobs"] = top_json(event.token.top_logprobs);
  return json;
}

Json event_json(const Interrupted& event) {
  return {{"event", "revoked"},
          {"lease", to_string(*event.completed.lease)},
          {"completion", event.completed.reason},
          {"scope", event.completed.scope},
          {"reason", event.completed.revoke_reason},
          {"detail", event.completed.detail},
          {"emitted_tokens", event.delivered_tokens}};
}

Json event_json(const Rebound& event) {
  Json json{{"event", "rebound"},
            {"old_lease", to_string(event.old_lease)},
            {"new_lease", to_string(event.new_lease)},
            {"emitted_tokens", event.delivered_tokens},
            {"mode", wire::name(event.mode)},
            {"took_ms", event.took / std::chrono::milliseconds(1)}};
  if (!event.other_arithmetic.empty()) json["other_arithmetic"] = event.other_arithmetic;
  return json;
}

Json event_json(const Retrying& event) {
  return {{"event", "retry"},
          {"code", name(event.error.code)},
          {"scope", name(event.error.scope)},
          {"detail", event.error.detail},
          {"delay_ms", event.delay / std::chrono::milliseconds(1)},
          {"attempt", event.attempt}};
}

Json event_json(const BrokerDisconnected& event) {
  return {{"event", "broker_lost"}, {"detail", event.error.detail}};
}

Json event_json(const Ended& event) {
  if (!event.error) {
    Json json{{"event", "completed"},
              {"reason", event.reason},
              {"emitted_tokens", event.delivered_tokens},
              {"cached_tokens", event.cached_tokens}};
    if (!event.note.empty()) json["note"] = event.note;
    if (!event.text.empty()) json["text"] = event.text;
    if (const auto embedding = wire::embedding_of(event.embedding)) json["embedding"] = *embedding;
    return json;
  }
  return {{"event", "failed"},
          {"code", name(event.error->code)},
          {"scope", name(event.error->scope)},
          {"detail", event.error->detail},
          {"emitted_tokens", event.delivered_tokens}};
}

struct AsText {
  TextOutput out;
  std::ostream& notes;

  void operator()(const Acquired& event) const {
    if (event.adopted_blocks == 0 || !event.replaces) return;
    remark(fmt::format("lease {} adopted {} blocks of lease {}", to_string(event.lease),
                       event.adopted_blocks, to_string(*event.replaces)));
  }
  void operator()(const Submitted& event) const {
    for (const std::string& part : event.unchecked) remark(fmt::format("not checked: {}", part));
    if (event.unchecked_omitted > 0)
      remark(fmt::format("not checked: {} more", event.unchecked_omitted));
  }
  void operator()(const PromptLogprobsArrived&) const {}
  void operator()(const TokenArrived& event) const {
    write(event.token.text);
    out.stream << std::flush;
  }
  void operator()(const Interrupted&) const {}
  void operator()(const Rebound& event) const {
    remark(fmt::format(
        "lease {} {} after {} token{}; continuing under lease {} ({}, new lease after {} ms)",
        to_string(event.old_lease), is_move(event.mode) ? "was replaced" : "ended",
        event.delivered_tokens, event.delivered_tokens == 1 ? "" : "s", to_string(event.new_lease),
        wire::name(event.mode), event.took / std::chrono::milliseconds(1)));
    if (event.other_arithmetic.empty()) return;
    remark(fmt::format("the text is computed again in {}; its tokens may differ from here on",
                       event.other_arithmetic));
  }
  void operator()(const Retrying& event) const {
    const std::string when =
        event.delay == Duration::zero()
            ? "at once"
            : fmt::format("in {} ms", event.delay / std::chrono::milliseconds(1));
    remark(fmt::format("{} ({}{}); retrying {}", event.error.detail, name(event.error.code),
                       event.error.scope == FailureScope::Engine ? ", engine scope" : "", when));
  }
  void operator()(const BrokerDisconnected& event) const {
    remark(
        fmt::format("{} (BrokerLost); the stream continues, and the lease is claimed again when "
                    "a broker answers before its deadline",
                    event.error.detail));
  }
  void operator()(const Ended& event) const {
    write(event.text);
    if (const auto embedding = wire::embedding_of(event.embedding))
      out.stream << Json(*embedding).dump() << std::endl;
    if (event.delivered_tokens > 0) out.stream << std::endl;
    if (event.error) notes << format_error(kProgram, *event.error) << std::endl;
    if (event.error && event.error->scope == FailureScope::Engine) {
      remark("engine scope: the failure concerns every tenant, not this one alone");
    }
    if (!event.note.empty()) remark(event.note);
    if (event.reason == "Cancelled") {
      remark(fmt::format("cancelled after {} tokens", event.delivered_tokens));
    }
  }

  void write(const std::string& text) const {
    out.stream << (out.is_terminal ? printable(text, "\n\t") : text);
  }

  void remark(const std::string& text) const {
    notes << kProgram << ": " << printable(text) << std::endl;
  }
};

}  // namespace

Json to_json(const SessionEvent& event, TimePoint at) {
  Json json = std::visit([](const auto& kind) { return event_json(kind); }, event);
  json["at_boottime_ns"] = at.boottime_ns;
  return json;
}

void print_text(const SessionEvent& event, TextOutput out, std::ostream& notes) {
  std::visit(AsText{out, notes}, event);
}

}  // namespace leasehold::tenant
