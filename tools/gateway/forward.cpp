#include "tools/gateway/forward.hpp"

#include <utility>
#include <vector>

#include "tools/gateway/decide/place.hpp"
#include "tools/gateway/host_request.hpp"

namespace leasehold::gateway {
namespace {

using boost::asio::awaitable;

/// A text without beats may wait this long for its first token.
constexpr std::chrono::minutes kAnswerTimeout{10};
constexpr std::chrono::seconds kNotFoundTimeout{5};
constexpr std::size_t kMaxNotFoundBytes = 64 << 10;
constexpr int kNotFound = 404;

/// Passes the pieces of an answer on. Returns false if its end was not reached.
awaitable<bool> pass_body(ClientExchange& client, HostConnection& connection) {
  while (true) {
    auto piece = co_await connection.read_body(kAnswerTimeout);
    if (!piece) co_return false;
    if (piece->empty()) co_return co_await client.end();
    if (!co_await client.write(*std::move(piece))) co_return false;
  }
}

awaitable<Result<HostExchange>> begin_exchange(Shared& shared, ClientExchange& client, HostId host,
                                               std::string_view body) {
  std::string text = request_to(shared, client, host, body);
  HostLink::OnConnected watch = [&client](std::shared_ptr<HostConnection> connection) {
    client.stream().on_end([connection] { connection->close(); });
  };
  return shared.hosts.link(host).exchange(std::move(text), client.head().method != "HEAD",
                                          kAnswerTimeout, std::move(watch));
}

/// Reads the rest of an answer that the client does not get.
awaitable<void> drop_answer(Shared& shared, HostId host, HostExchange exchange) {
  const auto body =
      co_await exchange.connection->read_whole_body(kNotFoundTimeout, kMaxNotFoundBytes);
  body ? shared.hosts.link(host).keep(exchange.connection) : exchange.connection->close();
  shared.hosts.table().ended(host);
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

awaitable<void> forward(Shared& shared, ClientExchange& client, Forwarded request) {
  std::vector<HostId> tried;
  while (true) {
    const PlaceQuery query{.model = request.model, .digest = request.placement, .without = tried};
    const auto host = place(shared.hosts.table(), query, shared.clock.now());
    if (!host) {
      const Error& error = host.error();
      const bool is_unknown = error.code == Errc::UnknownWorker && tried.empty();
      http::Answer answer = is_unknown ? plain_error(client.api(), 404, "model_not_found",
                                                     error.detail, client.x_request_id())
                                       : error_answer(client.api(), error, client.x_request_id());
      co_await client.send(std::move(answer));
      co_return;
    }
    shared.hosts.table().started(*host);
    auto exchange = co_await begin_exchange(shared, client, *host, request.body);
    if (!exchange) {
      shared.hosts.table().ended(*host);
      if (client.stream().is_ended()) co_return;
      // Only a request that no host has seen goes to another one.
      if (exchange.error().code == Errc::ConnectionRefused) {
        shared.hosts.table().unreachable(*host);
        tried.push_back(*host);
        continue;
      }
      co_await client.fail(exchange.error());
      co_return;
    }
    if (request.is_on_one_host && exchange->answer.status == kNotFound) {
      tried.push_back(*host);
      PlaceQuery others = query;
      others.without = tried;
      if (place(shared.hosts.table(), others, shared.clock.now())) {
        co_await drop_answer(shared, *host, *std::move(exchange));
        if (client.stream().is_ended()) co_return;
        continue;
      }
    }
    Fields fields = passed_on(exchange->answer.head);
    if (request.says_continue) fields.emplace_back("Leasehold-Continue", "no");
    if (exchange->answer.status == 401) client.end_connection();
    bool is_whole = co_await client.begin(exchange->answer.status, fields);
    if (is_whole) is_whole = co_await pass_body(client, *exchange->connection);
    client.stream().on_end(nullptr);
    shared.hosts.table().ended(*host);
    if (!is_whole) client.stream().close();  // the client sees that the answer is not whole
    is_whole ? shared.hosts.link(*host).keep(exchange->connection) : exchange->connection->close();
    co_return;
  }
}

}  // namespace leasehold::gateway
