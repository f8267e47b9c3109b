#include "worker/http/state_paths.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/cli/terminal_text.hpp"

namespace leasehold::http {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kReady = "/health";
constexpr std::string_view kLive = "/health/live";
constexpr std::string_view kHost = "/leasehold/host";

std::optional<Error> why_not_ready(const Shared& shared) {
  if (shared.draining) return shared.deps.stopping;
  return shared.deps.health != nullptr ? shared.deps.health->why_not() : std::nullopt;
}

bool is_asleep(const Shared& shared) {
  return shared.deps.health != nullptr && shared.deps.health->is_asleep();
}

Answer ready_answer(const Shared& shared) {
  const auto why_not = why_not_ready(shared);
  if (!why_not && is_asleep(shared)) return {.body = R"({"status":"ok","asleep":true})"};
  if (!why_not) return {.body = R"({"status":"ok"})"};
  Answer answer = refusal(*why_not);
  answer.status = 503;
  return answer;
}

Json models_of(const ApiModel& model) {
  const std::string identity = full_identity(model);
  Json models = Json::array();
  models.push_back({{"id", model.name}, {"identity", identity}});
  for (const std::string& alias : model.aliases)
    models.push_back({{"id", alias}, {"identity", identity}});
  return models;
}

Answer host_answer(const Shared& shared) {
  const auto why_not = why_not_ready(shared);
  const WorkerLoad load = shared.deps.load ? shared.deps.load() : WorkerLoad{};
  const Json host{{"host", shared.deps.host_name},
                  {"models", models_of(shared.deps.model)},
                  {"ready", !why_not},
                  {"code", why_not ? name(why_not->code) : ""},
                  {"asleep", is_asleep(shared)},
                  {"keeps_files", shared.deps.batch_store != nullptr},
                  {"loads_adapters", shared.deps.list_adapters != nullptr},
                  {"running", load.running},
                  {"waiting", load.waiting}};
  return {.body = escape_controls(host.dump())};
}

}  // namespace

std::string host_fields(const Shared& shared) {
  const Health* const health = shared.deps.health;
  const std::uint64_t incarnation = health != nullptr ? health->incarnation() : 0;
  std::string fields = fmt::format("Leasehold-Host: {}\r\n", shared.deps.host_name);
  if (incarnation != 0) fields += fmt::format("Leasehold-Incarnation: {}\r\n", incarnation);
  return fields;
}

bool is_state_path(std::string_view path) {
  return path == kReady || path == kLive || path == kHost;
}

Answer state_answer(const Shared& shared, const Head& head, const PeerAddress& peer) {
  if (head.path() == kReady) return ready_answer(shared);
  if (head.path() == kLive) return {.body = R"({"status":"alive"})"};
  // A proxy that speaks for a client says so in this header.
  const bool is_gateway =
      shared.deps.trusted_proxies.trusts(peer) && head.count("X-Forwarded-For") == 0;
  if (is_gateway) return host_answer(shared);
  return refusal({Errc::PermissionDenied,
                  "/leasehold/host is for gateways; name yours with --http-trusted-proxy"});
}

}  // namespace leasehold::http
