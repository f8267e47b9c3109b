#include "tools/gateway/forward/upload.hpp"

#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <utility>
#include <vector>

#include "tools/gateway/decide/place.hpp"
#include "tools/gateway/forward/holders.hpp"
#include "tools/gateway/forward/host_answer.hpp"
#include "tools/gateway/host_request.hpp"
#include "tools/gateway/signal.hpp"

namespace leasehold::gateway {
namespace {

namespace asio = boost::asio;
using asio::awaitable;

constexpr std::chrono::seconds kPieceTimeout{
    30};  // while the client sends, or the host reads, nothing
constexpr std::chrono::minutes kStoreTimeout{10};  // from the end of the body to the answer
constexpr std::string_view kGoOn = "HTTP/1.1 100 Continue\r\n\r\n";

/// A host that was connected to, and has received nothing.
struct UploadHost {
  HostId host;
  std::shared_ptr<HostConnection> connection;
};

/// The head of the host's answer, which may come at any time.
struct UploadAnswer {
  explicit UploadAnswer(asio::io_context& io) : arrived(io) {}
  std::optional<Result<HostHead>> head;
  Signal arrived;
};

awaitable<void> read_answer(std::shared_ptr<HostConnection> connection,
                            std::shared_ptr<UploadAnswer> answer) {
  auto head = co_await connection->read_head(true, std::nullopt);
  answer->head = std::move(head);
  answer->arrived.notify();
}

/// Connects to a host that keeps files. Errors: those of `place`.
awaitable<Result<UploadHost>> connect_host(Shared& shared, const ClientExchange& client) {
  std::vector<HostId> tried;
  while (true) {
    const PlaceQuery query{.digest = files_digest(client), .without = tried, .needs_files = true};
    const auto host = place(shared.hosts.table(), query, shared.clock.now());
    if (!host) co_return std::unexpected(host.error());
    const RunningOn running(shared.hosts.table(), *host);
    auto connection = co_await shared.hosts.link(*host).connect();
    if (connection) {
      UploadHost found{.host = *host, .connection = *std::move(connection)};
      co_return found;
    }
    if (connection.error().code == Errc::ConnectionRefused) shared.hosts.table().unreachable(*host);
    tried.push_back(*host);
  }
}

std::string head_for(Shared& shared, const ClientExchange& client, HostId host,
                     const http::Parser& parser) {
  HostRequest request{.client = &client.head(),
                      .host = shared.hosts.link(host).address().authority(),
                      .x_request_id = client.x_request_id(),
                      .client_address = client.parties().client};
  if (const auto length = parser.content_length()) {
    request.framing = fmt::format("Content-Length: {}\r\n", *length);
  } else if (parser.chunked()) {
    request.framing = "Transfer-Encoding: chunked\r\n";
  }
  return request.text();
}

std::string framed(std::string piece, bool is_chunked) {
  if (!is_chunked) return piece;
  const std::string size = fmt::format("{:x}\r\n", piece.size());
  return size + piece + "\r\n";
}

/// Sends the body while the host has not answered. Returns what is wrong with the client's body. A
/// host that takes no more has its own reason, which `answer` will say.
awaitable<Result<void>> send_body(ClientExchange& client, UnreadBody body, HostConnection& host,
                                  const UploadAnswer& answer) {
  const bool is_chunked = body.parser.chunked();
  std::uint64_t read = 0;
  while (!answer.head) {
    client.stream().expires_after(kPieceTimeout);
    auto piece = co_await http::read_body_piece(client.stream(), body.buffer, body.parser, read,
                                                kMaxUploadBytes);
    client.stream().expires_never();
    if (!piece) co_return std::unexpected(piece.error());
    const bool is_last = piece->empty();
    if (is_last && !is_chunked) break;
    std::string bytes = is_last ? "0\r\n\r\n" : framed(*std::move(piece), is_chunked);
    const auto sent = co_await host.send(std::move(bytes), kPieceTimeout);
    if (is_last || !sent) break;
  }
  co_return Result<void>();
}

/// Reads and drops what is left of a body, for a while.
awaitable<void> drop_rest(ClientExchange& client, UnreadBody body) {
  const auto deadline = Signal::Clock::now() + kPieceTimeout;
  std::uint64_t read = 0;
  while (!body.parser.is_done() && !client.stream().is_ended() && Signal::Clock::now() < deadline) {
    client.stream().expires_after(kPieceTimeout);
    const auto piece = co_await http::read_body_piece(client.stream(), body.buffer, body.parser,
                                                      read, kMaxUploadBytes);
    client.stream().expires_never();
    if (!piece || piece->empty()) co_return;
  }
}

/// Refuses an upload whose body was not read, or not to its end.
awaitable<void> refuse(ClientExchange& client, UnreadBody body, http::Answer answer) {
  client.end_connection();
  co_await client.send(std::move(answer));
  co_await drop_rest(client, body);
}

awaitable<void> await_answer(ClientExchange& client, UploadAnswer& answer) {
  const auto deadline = Signal::Clock::now() + kStoreTimeout;
  while (!answer.head && !client.stream().is_ended() && Signal::Clock::now() < deadline)
    co_await answer.arrived.wait_until(deadline);
}

/// Why the host has not stored the upload.
Error lost_upload(const UploadAnswer& answer, const std::string& host) {
  Error error{Errc::TimedOut, fmt::format("host {} does not answer", host)};
  if (answer.head) error = answer.head->error();
  error.detail +=
      "; the upload may not be stored: GET /v1/files shows it if it is, else send it again";
  return error;
}

/// Sends the request and passes the answer back.
awaitable<void> exchange_upload(Shared& shared, ClientExchange& client, UnreadBody body,
                                UploadHost to) {
  const RunningOn running(shared.hosts.table(), to.host);
  const auto answer = std::make_shared<UploadAnswer>(shared.io);
  client.stream().on_end([connection = to.connection] { connection->close(); });
  std::string head = head_for(shared, client, to.host, body.parser);
  const auto begun = co_await to.connection->send(std::move(head), kPieceTimeout);
  asio::co_spawn(shared.io, read_answer(to.connection, answer), asio::detached);
  if (begun && client.head().only("Expect")) {
    const http::Transfer sent = co_await client.stream().write(asio::buffer(kGoOn));
    if (sent.error) client.stream().close();
  }
  const auto body_sent = co_await send_body(client, body, *to.connection, *answer);
  if (!body_sent) {
    client.stream().on_end(nullptr);
    to.connection->close();
    client.end_connection();
    if (!client.stream().is_ended()) co_await client.fail(body_sent.error());
    co_return;
  }
  co_await await_answer(client, *answer);
  if (client.stream().is_ended()) co_return;
  if (!answer->head || !*answer->head) {
    client.stream().on_end(nullptr);
    const Error error = lost_upload(*answer, shared.hosts.link(to.host).address().text);
    to.connection->close();
    http::Answer refusal = error_answer(client.api(), error, client.x_request_id());
    co_return co_await refuse(client, body, std::move(refusal));
  }
  if (!body.parser.is_done()) client.end_connection();
  HostAnswer whole{.host = to.host,
                   .exchange = {.connection = to.connection, .answer = **std::move(answer->head)}};
  co_await pass_answer(shared, client, std::move(whole));
  client.stream().on_end(nullptr);  // another request may use the connection now
  co_await drop_rest(client, body);
}

awaitable<void> pass_upload(Shared& shared, ClientExchange& client, UnreadBody body) {
  auto host = co_await connect_host(shared, client);
  if (client.stream().is_ended()) co_return;
  if (!host) {
    http::Answer answer = no_host_answer(client, host.error());
    co_return co_await refuse(client, body, std::move(answer));
  }
  co_await exchange_upload(shared, client, body, *std::move(host));
}

}  // namespace

bool is_upload(const http::Head& head) {
  return head.method == "POST" && head.path() == "/v1/files";
}

/// A plain function: the frame of a coroutine here would have types of the anonymous namespace.
awaitable<void> answer_upload(Shared& shared, ClientExchange& client, UnreadBody body) {
  return pass_upload(shared, client, body);
}

}  // namespace leasehold::gateway
