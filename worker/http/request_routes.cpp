#include "worker/http/request_routes.hpp"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/cli/terminal_text.hpp"
#include "common/utf8.hpp"
#include "ipc/http/async_value.hpp"

namespace leasehold::http {
namespace {

using boost::asio::awaitable;
using Json = nlohmann::json;

Json entry_of(const RunningAnswer& answer, TimePoint now) {
  std::uint32_t prompt_tokens = 0;
  std::uint32_t completion_tokens = 0;
  bool awaits_lease = false;
  const std::vector<RunningChoice> choices = answer.choices();
  for (const RunningChoice& choice : choices) {
    prompt_tokens += choice.prompt_tokens;
    completion_tokens += choice.emitted_tokens;
    awaits_lease = awaits_lease || choice.awaits_lease;
  }
  return {{"id", answer.id},
          {"object", "request"},
          {"status", awaits_lease ? "queued" : "in_progress"},
          {"running_choices", choices.size()},
          {"prompt_tokens", prompt_tokens},
          {"completion_tokens", completion_tokens},
          {"age_ms", (now - answer.began_at) / std::chrono::milliseconds(1)}};
}

/// A resumable request whose client has left. Its API is not known, so the id is the client's.
Json entry_of(const wire::RequestView& detached) {
  using enum wire::RequestState;
  const bool waits = detached.state == Parsing || detached.state == Waiting;
  return {{"id", detached.id.substr(detached.id.find('/') + 1)},
          {"object", "request"},
          {"status", waits ? "queued" : "in_progress"},
          {"detached", true},
          {"running_choices", 1},
          {"prompt_tokens", detached.prompt_tokens},
          {"completion_tokens", detached.emitted_tokens},
          {"age_ms", detached.age_ms}};
}

// GCC 12 destroys braced temporaries in coroutines twice, so answers are built by function calls.

Answer unknown_request(const std::string& id) {
  return refusal({Errc::UnknownRequest,
                  fmt::format("no request {} of this tenant runs here; it may have ended, and GET "
                              "/v1/requests lists those of this key",
                              printable_excerpt(id))});
}

/// Cancels the request of this id. Returns the id, or the refusal.
awaitable<std::expected<std::string, Answer>> cancel(Shared& shared, const Caller& caller,
                                                     std::string id) {
  if (!shared.deps.stop_requests) co_return std::unexpected(unknown_request(id));
  AsyncValue<std::vector<RequestId>> stopped(*shared.deps.io);
  shared.deps.stop_requests(ids_meant(caller.tenant, id), stopped.giver());
  const auto found = co_await stopped.take();
  if (found && !found->empty()) co_return id;
  co_return std::unexpected(unknown_request(id));
}

Answer cancelled(const std::string& id, std::string_view object, Json more) {
  more["id"] = id;
  more["object"] = object;
  more["status"] = "cancelled";
  return {.body = escape_controls(more.dump())};
}

}  // namespace

std::string requests_json(const RunningAnswers& answers, const ApiKeyId& key,
                          const std::vector<wire::RequestView>& detached, TimePoint now) {
  std::multimap<std::string, Json> by_id;
  for (const wire::RequestView& request : detached) {
    Json entry = entry_of(request);
    by_id.emplace(entry["id"], std::move(entry));
  }
  for (const RunningAnswer& answer : answers.all())
    if (answer.key == key) by_id.emplace(answer.id, entry_of(answer, now));
  Json list = Json::array();
  for (auto& [id, entry] : by_id) list.push_back(std::move(entry));
  return escape_controls(Json{{"object", "list"}, {"data", std::move(list)}}.dump());
}

std::vector<std::string> ids_meant(const TenantId& tenant, std::string_view id) {
  const std::string own(wire::without_answer_prefix(id));
  std::vector<std::string> ids{wire::id_in_worker(tenant, {std::string(id)}).value};
  if (own != id) ids.push_back(wire::id_in_worker(tenant, {own}).value);
  return ids;
}

awaitable<void> serve_requests(Shared& shared, const Caller& caller, RouteInput,
                               HttpStream& stream) {
  std::optional<std::vector<wire::RequestView>> detached;
  if (shared.deps.list_detached) {
    AsyncValue<std::vector<wire::RequestView>> listed(*shared.deps.io);
    shared.deps.list_detached(caller.tenant, listed.giver());
    detached = co_await listed.take();
    if (!detached) co_return;  // the server is stopping
  }
  Answer answer;
  answer.body = requests_json(shared.running_answers, caller.key_id,
                              std::move(detached).value_or(std::vector<wire::RequestView>{}),
                              shared.deps.clock->now());
  co_await stream.send(std::move(answer));
}

awaitable<void> serve_request_cancel(Shared& shared, const Caller& caller, RouteInput input,
                                     HttpStream& stream) {
  auto id = co_await cancel(shared, caller, std::move(input.id));
  if (!id) co_return co_await stream.send(std::move(id).error());
  co_await stream.send(cancelled(*id, "request", Json::object()));
}

awaitable<void> serve_response_cancel(Shared& shared, const Caller& caller, RouteInput input,
                                      HttpStream& stream) {
  auto id = co_await cancel(shared, caller, std::move(input.id));
  if (!id) co_return co_await stream.send(std::move(id).error());
  const Json more{{"output", Json::array()}, {"model", shared.deps.model.name}};
  co_await stream.send(cancelled(*id, "response", more));
}

}  // namespace leasehold::http
