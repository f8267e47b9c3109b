#include "tools/gateway/forward/host_answer.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <utility>

#include "tools/gateway/host_request.hpp"

namespace leasehold::gateway {
namespace {

using boost::asio::awaitable;

/// A text without beats may wait this long for its first token.
constexpr std::chrono::minutes kAnswerTimeout{10};
constexpr std::string_view kEventEnd = "\n\n";

/// How far the body of an answer was passed on.
struct PassedBody {
  bool is_whole = false;
  std::optional<Error> lost = {};  ///< Why the host's side ended early.
  bool is_at_event_end = true;
};

/// Passes the pieces of an answer on.
awaitable<PassedBody> pass_body(ClientExchange& client, HostConnection& connection) {
  PassedBody passed;
  std::string end(kEventEnd);
  while (true) {
    auto piece = co_await connection.read_body(kAnswerTimeout);
    if (!piece) {
      passed.lost = piece.error();
      passed.is_at_event_end = end == kEventEnd;
      co_return passed;
    }
    if (piece->empty()) {
      passed.is_whole = co_await client.end();
      co_return passed;
    }
    end += piece->substr(piece->size() - std::min(piece->size(), kEventEnd.size()));
    end.erase(0, end.size() - kEventEnd.size());
    const bool is_sent = co_await client.write(*std::move(piece));
    if (!is_sent) co_return passed;
  }
}

/// Ends a stream of events whose host was lost, if its last event is complete.
awaitable<bool> end_with_error(ClientExchange& client, const PassedBody& passed, Error error) {
  if (!passed.lost || !passed.is_at_event_end) co_return false;
  const bool is_sent = co_await client.write(error_events(client.api(), error));
  co_return is_sent&& co_await client.end();
}

Error end_of(const Shared& shared, const HostAnswer& answer, const Error& lost) {
  const bool was_silent = answer.watch != nullptr && answer.watch->silence().has_value();
  const Error& error = was_silent ? *answer.watch->silence() : lost;
  return with_retry_advice(shared.is_cut ? gateway_stopped() : error, answer.is_resumable);
}

awaitable<void> pass_pieces(Shared& shared, ClientExchange& client, HostAnswer answer) {
  const std::shared_ptr<HostConnection> connection = answer.exchange.connection;
  const HostHead& head = answer.exchange.answer;
  const bool is_stream = is_event_stream(head.head);
  Fields fields = passed_on(head.head);
  if (answer.says_continue) fields.emplace_back("Leasehold-Continue", "no");
  note_key(shared, client, head.status);
  PassedBody passed;
  const bool has_begun = co_await client.begin(head.status, fields);
  if (has_begun) passed = co_await pass_body(client, *connection);
  passed.is_whole ? shared.hosts.link(answer.host).keep(connection) : connection->close();
  if (passed.is_whole) co_return;
  bool is_ended = false;
  if (is_stream && passed.lost)
    is_ended = co_await end_with_error(client, passed, end_of(shared, answer, *passed.lost));
  if (!is_ended) client.stream().close();  // the client sees that the answer is not whole
}

}  // namespace

std::string request_to(Shared& shared, const ClientExchange& client, HostId host,
                       std::string_view body) {
  return HostRequest{.client = &client.head(),
                     .host = shared.hosts.link(host).address().authority(),
                     .x_request_id = client.x_request_id(),
                     .client_address = client.parties().client,
                     .body = body}
      .text();
}

awaitable<Result<HostExchange>> begin_exchange(Shared& shared, const ClientExchange& client,
                                               const HostWatch& watch, std::string_view body) {
  const http::Head& head = client.head();
  HostLink::Call call{.request = request_to(shared, client, watch.host(), body),
                      .timeout = kAnswerTimeout,
                      .has_body = head.method != "HEAD",
                      .is_repeatable = is_repeatable(head.method, head.path()),
                      .on_connected = watch.on_connected()};
  return shared.hosts.link(watch.host()).exchange(std::move(call));
}

http::Answer no_host_answer(const ClientExchange& client, const Error& error) {
  if (error.code != Errc::UnknownWorker)
    return error_answer(client.api(), error, client.x_request_id());
  const bool is_file = concerns_files(client.head().path());
  return plain_error(client.api(), kNotFound, is_file ? "not_found" : kModelNotFound, error.detail,
                     client.x_request_id());
}

void note_key(Shared& shared, ClientExchange& client, int status) {
  const std::string_view key = client.head().api_key();
  if (status == 401) {
    shared.known_keys.refused(key);
    client.end_connection();
  }
  // A worker answers paths below /v1 with 200 only for a valid key.
  const bool is_valid = status == kOk && client.head().path().starts_with("/v1/");
  if (is_valid && !key.empty())
    shared.known_keys.accepted(key, {api_key_id(hash_of_api_key(key)).value});
}

void note_missing_key(Shared& shared, const ClientExchange& client, HostId host) {
  const std::string& address = shared.hosts.table().address(host);
  const TenantId owner = shared.owner_of(client.head().api_key(), client.parties().client);
  std::string id = fmt::format("{} {}", address, owner.value);
  if (shared.logged_missing_keys.contains(id)) return;
  (void)shared.logged_missing_keys.push({.owner = owner, .key = std::move(id)});
  spdlog::warn(
      "host lacks a key that another host has accepted host={} owner={}; texts of the key do not "
      "continue there until `brokerctl keys create --key-file FILE` adds it",
      address, owner.value);
}

/// A plain function: the frame of a coroutine here would have types of the anonymous namespace.
awaitable<void> pass_answer(Shared& shared, ClientExchange& client, HostAnswer answer) {
  return pass_pieces(shared, client, std::move(answer));
}

awaitable<Result<WholeAnswer>> read_whole_answer(Shared& shared, HostId host, HostExchange exchange,
                                                 AnswerLimits limits) {
  auto body = co_await exchange.connection->read_whole_body(limits.timeout, limits.max_bytes);
  if (!body) {
    exchange.connection->close();
    co_return std::unexpected(body.error());
  }
  shared.hosts.link(host).keep(std::move(exchange.connection));
  WholeAnswer answer{.status = exchange.answer.status,
                     .fields = passed_on(exchange.answer.head),
                     .body = *std::move(body)};
  co_return answer;
}

awaitable<bool> pass_whole(Shared& shared, ClientExchange& client, WholeAnswer answer) {
  note_key(shared, client, answer.status);
  co_return co_await client.send_whole(answer.status, answer.fields, std::move(answer.body));
}

}  // namespace leasehold::gateway
