#include "worker/http/routes.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/cli/terminal_text.hpp"
#include "common/machine/confined.hpp"
#include "common/utf8.hpp"
#include "ipc/control/transport/peer.hpp"
#include "ipc/http/async_value.hpp"
#include "ipc/http/http_url.hpp"
#include "worker/http/answers/answer_driver.hpp"
#include "worker/http/answers/embeddings_driver.hpp"
#include "worker/http/api/event_ids.hpp"
#include "worker/http/api/tokenize_api.hpp"
#include "worker/http/batch/batch_routes.hpp"
#include "worker/http/batch/file_routes.hpp"
#include "worker/http/on_pool.hpp"
#include "worker/http/request_routes.hpp"

namespace leasehold::http {
namespace {

using boost::asio::awaitable;
using Json = nlohmann::json;

Answer json_answer(const Json& json) {
  return {.body = escape_controls(json.dump())};
}

/// An adapter's entry names its base model as `parent`.
Json model_entry(const ApiModel& model, const std::string& id) {
  Json entry{{"id", id},
             {"object", "model"},
             {"created", model.changed_unix_s},
             {"owned_by", "leasehold"},
             {"max_model_len", model.max_context}};
  if (is_adapter(model, id)) entry["parent"] = model.name;
  return entry;
}

Answer models_answer(const ApiModel& model) {
  Json entries = Json::array({model_entry(model, model.name)});
  for (const std::string& alias : model.aliases) entries.push_back(model_entry(model, alias));
  for (const wire::VisibleAdapter& adapter : model.adapters) {
    const std::string& name = adapter.adapter.value;
    if (is_adapter(model, name)) entries.push_back(model_entry(model, name));
  }
  return json_answer({{"object", "list"}, {"data", std::move(entries)}});
}

Answer model_answer(const ApiModel& model, const std::string& id) {
  const bool is_known = has_name(model, id) || is_adapter(model, id);
  return is_known ? json_answer(model_entry(model, id)) : error_answer(unknown_model(model, id));
}

awaitable<void> serve_models(Shared& shared, const Caller& caller, RouteInput, HttpStream& stream) {
  const std::shared_ptr<const ApiModel> model = co_await shared.models.of(caller.tenant);
  co_await stream.send(models_answer(*model));
}

awaitable<void> serve_model(Shared& shared, const Caller& caller, RouteInput input,
                            HttpStream& stream) {
  const std::shared_ptr<const ApiModel> model = co_await shared.models.of(caller.tenant);
  co_await stream.send(model_answer(*model, input.id));
}

/// Parses one kind of body.
template <class Request>
using ParseBody = std::function<Read<Request>(std::string_view body, const ApiModel& model,
                                              const RequestDefaults& defaults)>;

/// An exception refuses the body. If it left a thread of the pool, it would end the worker.
template <class Request>
Read<Request> parse_confined(const ParseBody<Request>& parse_body, const std::string& body,
                             const ApiModel& model, const RequestDefaults& defaults) {
  auto parsed = catch_request_errors(
      [&]() -> Result<Read<Request>> { return parse_body(body, model, defaults); },
      Errc::BadRequest);
  return parsed ? *std::move(parsed) : std::unexpected(ApiError{parsed.error()});
}

/// Handles exceptions as parse_confined does.
Answer answer_confined(const std::function<Answer()>& work) {
  auto answer = catch_request_errors([&]() -> Result<Answer> { return work(); }, Errc::BadRequest);
  return answer ? *std::move(answer) : error_answer({answer.error()});
}

/// Parses long bodies on the pool, not on the thread that sends all streams.
template <class Request>
void parse(Shared& shared, const TenantId& tenant, std::shared_ptr<const ApiModel> model,
           ParseBody<Request> parse_body, RouteInput input,
           std::function<void(Read<Request>)> give) {
  const bool is_short = input.body.size() <= control::kShortLineBytes;
  const RequestDefaults defaults{
      .request_id = input.gateway.request_id,
      .created_unix_s = input.gateway.created_unix_s.value_or(std::time(nullptr)),
      .may_continue = input.gateway.beat.has_value()};
  auto work = [parse_body = std::move(parse_body), body = std::move(input.body), defaults,
               model = std::move(model), give = std::move(give)] {
    give(parse_confined(parse_body, body, *model, defaults));
  };
  is_short ? work() : shared.pool.run(tenant, std::move(work));
}

/// In a cell, the host that wrote the text may still use the tenant's limits.
void note_move(const Shared& shared, const Caller& caller, const ApiRequest& request,
               const GatewayFields& gateway, const HttpStream& stream) {
  if (gateway.moved_from.empty()) return;
  if (const auto host = running_host(gateway.moved_from); host && shared.deps.want_part)
    shared.deps.want_part({.tenant = caller.tenant, .moved_from = host});
  spdlog::info("HTTP request moved here tenant={} request={} from={}{}", caller.tenant.value,
               request.submit.request_id.value, gateway.moved_from, stream.labels().log_text());
}

template <Api api>
awaitable<void> serve_generation(Shared& shared, const Caller& caller, RouteInput input,
                                 HttpStream& stream) {
  const std::size_t size_bytes = input.body.size();
  // A text that its client comes back to keeps its time.
  if (const auto created = created_in(caller.last_event_id.value_or("")))
    input.gateway.created_unix_s = created;
  const GatewayFields gateway = input.gateway;
  std::shared_ptr<const ApiModel> served = co_await shared.models.of(caller.tenant);
  AsyncValue<Read<ApiRequest>> parsed(*shared.deps.io);
  const ParseBody<ApiRequest> parse_body = [](std::string_view body, const ApiModel& model,
                                              const RequestDefaults& defaults) {
    return parse_api_request(api, body, model, defaults);
  };
  parse<ApiRequest>(shared, caller.tenant, std::move(served), parse_body, std::move(input),
                    parsed.giver());
  auto request = co_await parsed.take();
  if (!request) co_return;  // the server is stopping
  if (!*request) co_return co_await stream.send(error_answer(request->error()));
  (*request)->beat = gateway.beat;
  (*request)->emitted_adapters = gateway.adapters;
  note_move(shared, caller, **request, gateway, stream);
  // Each further choice keeps a copy of its prompt, and sends it to the worker.
  const std::size_t copies = (*request)->n - 1;
  const auto taken = shared.places.take_body(caller.connection, copies * size_bytes);
  if (!taken) co_return co_await stream.send(refusal(taken.error()));
  if (copies > 0) {
    co_await async_wait_for(*shared.deps.io,
                            shared.body_rate_limiter.reserve(caller.tenant, copies * size_bytes,
                                                             shared.deps.clock->now()));
  }
  co_await answer_request(shared, caller, **std::move(request), stream);
}

awaitable<void> serve_embeddings(Shared& shared, const Caller& caller, RouteInput input,
                                 HttpStream& stream) {
  std::shared_ptr<const ApiModel> model = co_await shared.models.of(caller.tenant);
  AsyncValue<Read<EmbeddingsRequest>> parsed(*shared.deps.io);
  parse<EmbeddingsRequest>(shared, caller.tenant, std::move(model), parse_embeddings_request,
                           std::move(input), parsed.giver());
  auto request = co_await parsed.take();
  if (!request) co_return;  // the server is stopping
  if (!*request) co_return co_await stream.send(error_answer(request->error()));
  co_await answer_request(shared, caller, **std::move(request), stream);
}

awaitable<void> serve_off_thread(Shared& shared, const Caller& caller, HttpStream& stream,
                                 std::function<Answer()> work) {
  AsyncValue<Answer> made(*shared.deps.io);
  shared.pool.run(caller.tenant,
                  [work = std::move(work), give = made.giver()] { give(answer_confined(work)); });
  auto answer = co_await made.take();
  if (answer) co_await stream.send(*std::move(answer));
}

awaitable<void> serve_tokenize(Shared& shared, const Caller& caller, RouteInput input,
                               HttpStream& stream) {
  const std::shared_ptr<const ApiModel> model = co_await shared.models.of(caller.tenant);
  std::function<Answer()> work = [body = std::move(input.body), model, deps = &shared.deps] {
    return tokenize(body, *deps->tokenizer, *model, deps->encode_chat);
  };
  co_await serve_off_thread(shared, caller, stream, std::move(work));
}

awaitable<void> serve_detokenize(Shared& shared, const Caller& caller, RouteInput input,
                                 HttpStream& stream) {
  const std::shared_ptr<const ApiModel> model = co_await shared.models.of(caller.tenant);
  std::function<Answer()> work = [body = std::move(input.body), model, deps = &shared.deps] {
    return detokenize(body, *deps->tokenizer, *model);
  };
  co_await serve_off_thread(shared, caller, stream, std::move(work));
}

awaitable<void> serve_token_count(Shared& shared, const Caller& caller, RouteInput input,
                                  HttpStream& stream) {
  const std::shared_ptr<const ApiModel> model = co_await shared.models.of(caller.tenant);
  std::function<Answer()> work = [body = std::move(input.body), model, deps = &shared.deps] {
    return count_message_tokens(body, *model, deps->encode_chat);
  };
  co_await serve_off_thread(shared, caller, stream, std::move(work));
}

awaitable<void> serve_tokenizer_info(Shared& shared, const Caller&, RouteInput,
                                     HttpStream& stream) {
  return stream.send(tokenizer_info(*shared.deps.tokenizer));
}

using Serve = decltype(Route::serve);

constexpr Route generation(std::string_view path, Serve serve, bool is_resumable) {
  return {.path = path,
          .method = "POST",
          .serve = serve,
          .is_resumable = is_resumable,
          .generates = true,
          .has_identity = true};
}

constexpr Route models(std::string_view path, Serve serve) {
  return {.path = path, .method = "GET", .serve = serve, .has_identity = true};
}

constexpr Route kRoutes[] = {
    models("/v1/models", serve_models),
    models("/v1/models/ID", serve_model),
    generation("/v1/completions", serve_generation<Api::Completions>, true),
    generation("/v1/chat/completions", serve_generation<Api::Chat>, true),
    generation("/v1/responses", serve_generation<Api::Responses>, true),
    generation("/v1/messages", serve_generation<Api::Messages>, false),
    {.path = "/v1/embeddings", .method = "POST", .serve = serve_embeddings, .has_identity = true},
    {"/v1/responses/ID/cancel", "POST", serve_response_cancel},
    {"/v1/requests", "GET", serve_requests},
    {"/v1/requests/ID/cancel", "POST", serve_request_cancel},
    {.path = "/v1/files", .method = "POST", .serve = serve_upload, .reads_body = true},
    {"/v1/files", "GET", serve_files},
    {"/v1/files/ID/content", "GET", serve_file_content},
    {"/v1/files/ID", "GET", serve_file},
    {"/v1/files/ID", "DELETE", serve_file_removal},
    {"/v1/batches", "POST", serve_batch_creation},
    {"/v1/batches", "GET", serve_batches},
    {"/v1/batches/ID/cancel", "POST", serve_batch_cancel},
    {"/v1/batches/ID", "GET", serve_batch},
    {"/v1/messages/count_tokens", "POST", serve_token_count},
    {"/tokenize", "POST", serve_tokenize},
    {"/detokenize", "POST", serve_detokenize},
    {"/tokenizer_info", "GET", serve_tokenizer_info},
};

constexpr std::string_view kAllowPost = "Allow: POST, OPTIONS\r\n";
constexpr std::string_view kAllowGetPost = "Allow: GET, HEAD, POST, OPTIONS\r\n";
constexpr std::string_view kAllowGetDelete = "Allow: GET, HEAD, DELETE, OPTIONS\r\n";

/// The header for a path with these methods.
std::string_view allow_header(std::string_view methods) {
  if (methods == "GET") return kAllowGet;
  if (methods == "POST") return kAllowPost;
  return methods.ends_with("DELETE") ? kAllowGetDelete : kAllowGetPost;
}

constexpr std::string_view kId = "ID";

/// What is in this path at the place of the route's "ID"; empty if the route has none. Returns
/// nothing if the path is not of the route.
std::optional<std::string_view> match(const Route& route, std::string_view path) {
  const std::size_t begin = route.path.find(kId);
  if (begin == std::string_view::npos)
    return path == route.path ? std::optional<std::string_view>("") : std::nullopt;
  const std::string_view after = route.path.substr(begin + kId.size());
  const bool is_longer = path.size() > begin + after.size();
  if (!is_longer || !path.starts_with(route.path.substr(0, begin)) || !path.ends_with(after))
    return std::nullopt;
  return path.substr(begin, path.size() - begin - after.size());
}

std::string unknown_path(std::string_view path) {
  std::string message = "no path " + printable_excerpt(path) + "; the paths are /health";
  std::string_view last;
  for (const Route& route : kRoutes) {
    if (route.path != last) message.append(", ").append(route.path);
    last = route.path;
  }
  return message;
}

}  // namespace

std::expected<const Route*, Answer> find_route(const Head& head) {
  const std::string_view path = head.path();
  const Route* known = nullptr;  // the first with this path
  std::string methods;
  for (const Route& route : kRoutes) {
    if (!match(route, path) || (known != nullptr && route.path != known->path)) continue;
    const bool is_head = head.method == "HEAD" && route.method == "GET";
    if (is_head || head.method == route.method) return &route;
    methods.append(methods.empty() ? "" : " or ").append(route.method);
    known = &route;
  }
  if (known == nullptr) return std::unexpected(plain_error(404, "not_found", unknown_path(path)));
  Answer refused = plain_error(405, "method", "use " + methods);
  refused.extra_headers = allow_header(methods);
  return std::unexpected(std::move(refused));
}

RouteInput input_of(const Route& route, const Head& head) {
  const std::size_t mark = head.target.find('?');
  return {.body = {},
          .id = percent_decoded(match(route, head.path()).value_or("")),
          .query = mark == std::string::npos ? "" : head.target.substr(mark + 1),
          .content_type = std::string(head.only("Content-Type").value_or(""))};
}

}  // namespace leasehold::http
