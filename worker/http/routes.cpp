#include "worker/http/routes.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "worker/http/answer_driver.hpp"

namespace leasehold::http {
namespace {

using boost::asio::awaitable;
using Json = nlohmann::json;

Answer models(const ApiModel& model) {
  const Json entry{{"id", model.name},
                   {"object", "model"},
                   {"created", 0},
                   {"owned_by", "leasehold"},
                   {"max_model_len", model.max_context}};
  return {.body = Json{{"object", "list"}, {"data", Json::array({entry})}}.dump()};
}

awaitable<void> serve_models(Shared& shared, const Caller&, std::string, HttpStream& stream) {
  return stream.send(models(shared.deps.model));
}

template <Api api>
awaitable<void> serve_generation(Shared& shared, const Caller& caller, std::string body,
                                 HttpStream& stream) {
  auto request = parse_api_request(api, body, shared.deps.model);
  if (!request) co_return co_await stream.send(error_answer(request.error()));
  body = {};
  co_await answer_request(shared, caller, *std::move(request), stream);
}

constexpr Route kRoutes[] = {
    {"/v1/models", "GET", serve_models},
    {"/v1/completions", "POST", serve_generation<Api::Completions>},
    {"/v1/chat/completions", "POST", serve_generation<Api::Chat>},
};

}  // namespace

std::expected<const Route*, Answer> find_route(const Head& head) {
  const Route* route = std::ranges::find(kRoutes, head.path(), &Route::path);
  if (route == std::end(kRoutes))
    return std::unexpected(plain_error(404, "not_found", "no such path"));
  if (head.method != route->method)
    return std::unexpected(plain_error(405, "method", "use " + std::string(route->method)));
  return route;
}

}  // namespace leasehold::http
