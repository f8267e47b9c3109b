#include "tests/checks/attack/outcome.hpp"

#include <nlohmann/json.hpp>

namespace leasehold::attack {
namespace {

using wire::Json;

constexpr std::string_view kTokenHead = R"("method":"token.emitted")";

constexpr std::string_view kHttpVersion = "HTTP/1.1 ";

/// A line of a head, or the empty one after it.
bool is_http_field(std::string_view line) {
  return line.ends_with('\r');
}

struct Field {
  const char* name;
  std::uint64_t Outcome::* value;
};
constexpr Field kFields[] = {{"runs", &Outcome::runs},
                             {"connections", &Outcome::connections},
                             {"refused_connections", &Outcome::refused_connections},
                             {"closed_connections", &Outcome::closed_connections},
                             {"bytes_sent", &Outcome::bytes_sent},
                             {"tokens", &Outcome::tokens}};

Outcome outcome_from_json(const Json& json) {
  Outcome outcome;
  for (const Field& field : kFields) outcome.*field.value = json.at(field.name);
  outcome.replies = json.at("replies").get<std::map<std::string, std::uint64_t>>();
  return outcome;
}

/// The key of `Outcome::replies` for a message that is not a token.
std::string reply_kind(const Json& message) {
  if (!message.is_object()) return "not JSON";
  if (message.contains("result")) return "ok";
  if (message.contains("error")) {
    const Json data = message["error"].value("data", Json::object());
    return data.value("code", std::string("no code"));
  }
  const auto method = message.value("method", std::string("no method"));
  if (method != "request.completed") return method;
  return "ended " + message.value("params", Json::object()).value("reason", std::string("?"));
}

}  // namespace

void Outcome::add(const Outcome& other) {
  for (const Field& field : kFields) this->*field.value += other.*field.value;
  for (const auto& [kind, count] : other.replies) replies[kind] += count;
}

Json to_json(const Outcome& outcome) {
  Json json = {{"replies", outcome.replies}};
  for (const Field& field : kFields) json[field.name] = outcome.*field.value;
  return json;
}

Json to_json(const AttackerReport& report) {
  Json attacks = Json::object();
  for (const auto& [name, outcome] : report.attacks) attacks[name] = to_json(outcome);
  return {{"cpu_ns", report.cpu_ns}, {"attacks", std::move(attacks)}};
}

Result<AttackerReport> attacker_report_from_text(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    AttackerReport report{.cpu_ns = json.at("cpu_ns")};
    for (const auto& [name, outcome] : json.at("attacks").items())
      report.attacks[name] = outcome_from_json(outcome);
    return report;
  } catch (const Json::exception& error) {
    return fail(Errc::MalformedMessage,
                std::string("the report of an attacker cannot be parsed: ") + error.what());
  }
}

void count_line(Outcome& outcome, std::string_view line) {
  // Text of the model comes after "params", so it cannot imitate a method.
  if (line.substr(0, line.find("\"params\"")).find(kTokenHead) != std::string_view::npos) {
    ++outcome.tokens;
    return;
  }
  if (line.starts_with(kHttpVersion)) {
    ++outcome.replies["HTTP " + std::string(line.substr(kHttpVersion.size(), 3))];
  } else if (!is_http_field(line)) {
    ++outcome.replies[reply_kind(Json::parse(line, nullptr, false))];
  }
}

}  // namespace leasehold::attack
