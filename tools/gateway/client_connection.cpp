#include "tools/gateway/client_connection.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <utility>

#include "ipc/http/http_errors.hpp"
#include "ipc/http/http_url.hpp"
#include "tools/gateway/decide/place.hpp"
#include "tools/gateway/forward/forward.hpp"
#include "tools/gateway/forward/holders.hpp"
#include "tools/gateway/forward/lists.hpp"
#include "tools/gateway/forward/upload.hpp"
#include "tools/gateway/text_relay.hpp"

namespace leasehold::gateway {
namespace {

using boost::asio::awaitable;

constexpr auto kHeadTimeout = std::chrono::seconds(10);
constexpr auto kIdleTimeout = std::chrono::seconds(60);  // between the requests of a known key
constexpr auto kBodyTimeout = std::chrono::seconds(30);
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
constexpr std::string_view kHealth = "/health";
constexpr std::string_view kLive = "/health/live";
constexpr std::string_view kModels = "/v1/models";
constexpr std::string_view kModel = "/v1/models/";
constexpr std::string_view kRequests = "/v1/requests";
constexpr std::string_view kFiles = "/v1/files";
constexpr std::string_view kBatches = "/v1/batches";
constexpr std::string_view kOwnPaths = "/leasehold/";  // between gateways and hosts

Error share_is_used() {
  return {Errc::QueueFull,
          "requests in progress of this client have its share of memory; retry when one has ended"};
}

}  // namespace

awaitable<void> ClientConnection::run() {
  bool goes_on = true;
  while (goes_on) goes_on = co_await serve_one();
  stream().close();
}

/// Returns false at the end of the connection.
awaitable<bool> ClientConnection::serve_one() {
  http::Parser parser;
  stream().expires_after(has_known_key_ ? kIdleTimeout : kHeadTimeout);
  http::RequestHead read =
      co_await http::read_request_head(stream(), buffer_, parser, kMaxUploadBytes);
  stream().expires_never();
  if (!read.head && !read.refused) co_return false;
  http::Head head = read.head ? *std::move(read.head) : http::Head{.method = {}, .target = {}};
  ClientExchange::Parties parties{.peer = client_.peer, .client = client_.peer};
  parties.client = shared_->options.trusted_proxies.client_of(client_.peer, head);
  ClientExchange client(stream(), std::move(head), std::move(parties),
                        !read.refused && parser.keep_alive());
  if (read.refused) {
    co_await client.send(*std::move(read.refused));
    co_return false;
  }
  co_await answer(parser, client);
  ++shared_->metrics.requests[client.has_begun() ? client.status() : 0];
  co_return client.keeps_alive() && parser.is_done() && !shared_->is_draining;
}

Result<void> ClientConnection::take_place(const ClientExchange& client, const TenantId& owner) {
  http::Places& places = shared_->places;
  const auto place = places.note_source(client_.place, http::source_of(client.parties().client));
  if (place.displaced) client_.close_other(*place.displaced);
  if (!place.accepted) {
    return fail(Errc::QueueFull, "a newer connection of this source took the place; connect again");
  }
  has_known_key_ = shared_->known_keys.contains(client.head().api_key());
  if (!has_known_key_) return {};
  return places.authenticated(client_.place, owner);
}

awaitable<void> ClientConnection::answer(http::Parser& parser, ClientExchange& client) {
  const http::Head& head = client.head();
  const std::string_view path = head.path();
  if (path == kHealth || path == kLive) co_return co_await answer_health(client);
  const TenantId owner = shared_->owner_of(head.api_key(), client.parties().client);
  if (const auto place = take_place(client, owner); !place) {
    client.end_connection();
    co_await client.fail(place.error());
    co_return;
  }
  if (path.starts_with(kOwnPaths)) {
    http::Answer hidden =
        plain_error(client.api(), 404, "not_found",
                    "a gateway does not pass on paths below /leasehold/", client.x_request_id());
    co_await client.send(std::move(hidden));
    co_return;
  }
  const bool is_streamed = is_upload(head);
  if (auto too_long = http::refuse_head(head, is_streamed ? kMaxUploadBytes : kMaxBodyBytes)) {
    client.end_connection();
    co_await client.send(*std::move(too_long));
    co_return;
  }
  ShareOf share(shared_->bodies, owner);
  const auto length = parser.is_done() ? 0 : parser.content_length().value_or(kMaxBodyBytes);
  if (!share.take(is_streamed ? kUploadBytes : length)) {
    client.end_connection();
    co_await client.fail(share_is_used());
    co_return;
  }
  if (is_streamed) co_return co_await stream_upload(parser, client);
  if (!co_await read_body(parser, client)) co_return;
  std::string body = std::move(parser.get().body());
  const Duration wait =
      shared_->body_rate_limiter.reserve(owner, body.size(), shared_->clock.now());
  if (wait > Duration::zero()) co_await http::async_wait_for(shared_->io, wait);
  co_await answer_body(client, std::move(body), owner);
}

awaitable<void> ClientConnection::stream_upload(http::Parser& parser, ClientExchange& client) {
  const Answering answering(*shared_);
  ++shared_->metrics.uploads;
  UnreadBody body{.parser = parser, .buffer = buffer_};
  co_await answer_upload(*shared_, client, body);
  --shared_->metrics.uploads;
}

awaitable<void> ClientConnection::answer_body(ClientExchange& client, std::string body,
                                              TenantId owner) {
  const Answering answering(*shared_);
  const http::Head& head = client.head();
  const std::string_view path = head.path();
  if (generates(head.method, path))
    co_return co_await answer_text(client, std::move(body), std::move(owner));
  if (head.method == "GET" && path == kModels) co_return co_await answer_models(*shared_, client);
  if (head.method == "GET" && path == kRequests)
    co_return co_await answer_requests(*shared_, client);
  if (head.method == "GET" && (path == kFiles || path == kBatches))
    co_return co_await answer_files(*shared_, client);
  if (concerns_files(path) || (head.method == "POST" && path.ends_with("/cancel"))) {
    Held held{.body = std::move(body), .is_kept = concerns_files(path)};
    co_return co_await answer_on_holder(*shared_, client, std::move(held));
  }
  Forwarded request{.body = std::move(body)};
  if (path.starts_with(kModel)) request.model = http::percent_decoded(path.substr(kModel.size()));
  if (const auto facts = gateway::read_body(request.body)) {
    request.model = facts->model;
    request.placement = placement_digest(head.api_key(), facts->prompt);
  }
  co_await forward(*shared_, client, std::move(request));
}

awaitable<void> ClientConnection::answer_text(ClientExchange& client, std::string body,
                                              TenantId owner) {
  if (shared_->is_draining) {
    Error error{Errc::Draining, "this gateway is stopping; use another one, or retry"};
    co_await client.fail(std::move(error));
    co_return;
  }
  auto facts = gateway::read_body(body);
  if (!facts) {
    co_await client.fail(facts.error());
    co_return;
  }
  ShareOf replay(shared_->replays, owner);
  if (!replay.take(body.size())) {
    ++shared_->metrics.not_replayable;
    Forwarded request{.body = std::move(body),
                      .model = facts->model,
                      .placement = placement_digest(client.head().api_key(), facts->prompt),
                      .says_continue = true,
                      .is_resumable = facts->resumable};
    co_await forward(*shared_, client, std::move(request));
    co_return;
  }
  TextRequest request{
      .body = std::move(body), .facts = *std::move(facts), .owner = std::move(owner)};
  const auto relay = std::make_shared<TextRelay>(shared_, client, std::move(request));
  co_await relay->run();
}

awaitable<void> ClientConnection::answer_health(ClientExchange& client) {
  const bool asks_readiness = client.head().path() == kHealth;
  // Clients without a key read it, so it names no model; the log does.
  http::Answer answer{.body = fmt::format(R"({{"status":"ok","models_computed_differently":{}}})",
                                          count_ambiguous(shared_->hosts.identities()))};
  Error error{Errc::NoModelLoaded, fmt::format("none of {} hosts is ready", shared_->hosts.size())};
  if (shared_->is_draining) error = {Errc::Draining, "this gateway is stopping"};
  const std::size_t serving =
      shared_->hosts.count(HostState::Ready) + shared_->hosts.count(HostState::Late);
  const bool is_ready = serving > 0 && !shared_->is_draining;
  if (asks_readiness && !is_ready) answer = http::refusal(error);
  co_await client.send(std::move(answer));
}

awaitable<bool> ClientConnection::read_body(http::Parser& parser, ClientExchange& client) {
  if (parser.is_done()) co_return true;
  if (client.head().only("Expect")) {
    const http::Transfer sent = co_await stream().write(boost::asio::buffer(kContinue));
    if (sent.error) co_return false;
  }
  stream().expires_after(kBodyTimeout);
  http::RequestBody read =
      co_await http::read_request_body(stream(), buffer_, parser, kMaxBodyBytes);
  stream().expires_never();
  if (read.is_whole) co_return true;
  client.end_connection();
  if (read.refused) co_await client.send(*std::move(read.refused));
  co_return false;
}

}  // namespace leasehold::gateway
