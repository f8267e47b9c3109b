#include "tools/gateway/forward.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "common/cli/print_error.hpp"
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
constexpr std::string_view kFilesPlace = "/v1/files";

/// Passes the pieces of an answer on. Returns false if its end was not reached.
awaitable<bool> pass_body(ClientExchange& client, HostConnection& connection) {
  while (true) {
    auto piece = co_await connection.read_body(kAnswerTimeout);
    if (!piece) co_return false;
    if (piece->empty()) co_return co_await client.end();
    if (!co_await client.write(*std::move(piece))) co_return false;
  }
}

/// The exchange ends when the client leaves.
awaitable<Result<HostExchange>> begin_exchange(Shared& shared, ClientExchange& client, HostId host,
                                               std::string_view body) {
  const http::Head& head = client.head();
  HostLink::Call call{.request = request_to(shared, client, host, body),
                      .timeout = kAnswerTimeout,
                      .has_body = head.method != "HEAD",
                      .is_repeatable = is_repeatable(head.method, head.path()),
                      .on_connected = [&client](std::shared_ptr<HostConnection> connection) {
                        client.stream().on_end([connection] { connection->close(); });
                      }};
  return shared.hosts.link(host).exchange(std::move(call));
}

/// An answer that says that a host does not have something.
struct NotFound {
  Fields fields;
  std::string body;
};

/// Reads the rest of an answer that the client may not get.
awaitable<NotFound> read_not_found(Shared& shared, HostId host, HostExchange exchange) {
  NotFound read{.fields = passed_on(exchange.answer.head), .body = {}};
  auto body = co_await exchange.connection->read_whole_body(kNotFoundTimeout, kMaxNotFoundBytes);
  if (body) {
    shared.hosts.link(host).keep(exchange.connection);
    read.body = *std::move(body);
  } else {
    exchange.connection->close();
  }
  co_return read;
}

/// The hosts that may have what a request names; the most likely first.
std::vector<HostId> holders(const Shared& shared, const ClientExchange& client, bool is_kept) {
  const HostTable& table = shared.hosts.table();
  std::vector<HostId> hosts = shared.hosts.answering();
  if (is_kept) std::erase_if(hosts, [&](HostId host) { return !table.report(host)->keeps_files; });
  std::ranges::sort(hosts, std::ranges::greater{}, [&](HostId host) {
    return placement_weight(files_digest(client), table.address(host));
  });
  return hosts;
}

/// Those in the list that may have it and do not answer.
std::size_t silent_hosts(const Shared& shared, bool is_kept) {
  const HostTable& table = shared.hosts.table();
  const std::vector<HostId> answering = shared.hosts.answering();
  const auto hosts = shared.hosts.all();
  return static_cast<std::size_t>(std::ranges::count_if(hosts, [&](HostId host) {
    const HostReport* report = table.report(host);
    const bool may_have_it = !is_kept || report == nullptr || report->keeps_files;
    return may_have_it && std::ranges::find(answering, host) == answering.end();
  }));
}

/// True if the request may go to another host after one ended the connection with this error.
bool may_be_sent_again(const ClientExchange& client, const Error& error) {
  const http::Head& head = client.head();
  return error.code == Errc::ConnectionLost && is_repeatable(head.method, head.path());
}

/// No host said that it has what the request names. `silent` hosts said nothing.
awaitable<void> answer_not_found(Shared& shared, ClientExchange& client, bool is_kept,
                                 std::size_t silent, std::optional<NotFound> last) {
  if (last && (silent == 0 || !is_kept)) {
    note_key(shared, client, kNotFound);
    co_await client.send_whole(kNotFound, last->fields, std::move(last->body));
    co_return;
  }
  Error error{
      Errc::NoModelLoaded,
      fmt::format("{} of {} hosts do not answer, and no other one has what the request names; "
                  "retry, or ask the operator",
                  silent, shared.hosts.size())};
  error.retry_after_ms = 1'000;
  if (silent == 0) {
    const PlaceQuery query{.needs_files = true};
    const auto host = place(shared.hosts.table(), query, shared.clock.now());
    if (!host) error = host.error();
  }
  http::Answer answer = no_host_answer(client, error);
  co_await client.send(std::move(answer));
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

std::uint64_t files_digest(const ClientExchange& client) {
  return placement_digest(client.head().api_key(), kFilesPlace);
}

http::Answer no_host_answer(const ClientExchange& client, const Error& error) {
  if (error.code != Errc::UnknownWorker)
    return error_answer(client.api(), error, client.x_request_id());
  const bool is_file = concerns_files(client.head().path());
  return plain_error(client.api(), kNotFound, is_file ? "not_found" : "model_not_found",
                     error.detail, client.x_request_id());
}

void note_key(Shared& shared, ClientExchange& client, int status) {
  const std::string_view key = client.head().api_key();
  if (status == 401) {
    shared.known_keys.refused(key);
    client.end_connection();
  }
  // A worker answers paths below /v1 with 200 only for a valid key.
  const bool is_valid = status == 200 && client.head().path().starts_with("/v1/");
  if (is_valid && !key.empty())
    shared.known_keys.accepted(key, {api_key_id(hash_of_api_key(key)).value});
}

awaitable<void> pass_answer(Shared& shared, ClientExchange& client, HostAnswer answer) {
  const std::shared_ptr<HostConnection> connection = answer.exchange.connection;
  const int status = answer.exchange.answer.status;
  Fields fields = passed_on(answer.exchange.answer.head);
  if (answer.says_continue) fields.emplace_back("Leasehold-Continue", "no");
  note_key(shared, client, status);
  bool is_whole = co_await client.begin(status, fields);
  if (is_whole) is_whole = co_await pass_body(client, *connection);
  client.stream().on_end(nullptr);
  if (!is_whole) client.stream().close();  // the client sees that the answer is not whole
  is_whole ? shared.hosts.link(answer.host).keep(connection) : connection->close();
}

awaitable<void> forward(Shared& shared, ClientExchange& client, Forwarded request) {
  std::vector<HostId> tried;
  std::uint32_t deaths = 0;    // hosts that ended the connection without an answer
  std::optional<Error> death;  // of the last of them
  while (true) {
    const PlaceQuery query{.model = request.model, .digest = request.placement, .without = tried};
    const auto host = place(shared.hosts.table(), query, shared.clock.now());
    if (!host) {
      Error error = death.value_or(host.error());
      // The list of a moment ago had a host with the model.
      if (error.code == Errc::UnknownWorker && !tried.empty()) error.code = Errc::NoModelLoaded;
      http::Answer answer = no_host_answer(client, error);
      co_await client.send(std::move(answer));
      co_return;
    }
    const RunningOn running(shared.hosts.table(), *host);
    auto exchange = co_await begin_exchange(shared, client, *host, request.body);
    if (exchange) {
      HostAnswer answer{
          .host = *host, .exchange = *std::move(exchange), .says_continue = request.says_continue};
      co_return co_await pass_answer(shared, client, std::move(answer));
    }
    if (client.stream().is_ended()) co_return;
    tried.push_back(*host);
    if (exchange.error().code == Errc::ConnectionRefused) {
      shared.hosts.table().unreachable(*host);
      continue;
    }
    death = exchange.error();
    const bool goes_on = may_be_sent_again(client, *death) && deaths < shared.options.moves;
    if (!goes_on) {
      co_await client.fail(*death);
      co_return;
    }
    ++deaths;
    spdlog::info("request goes to another host x_request_id={} reason=\"{}\"",
                 client.x_request_id(), printable(death->detail));
  }
}

namespace {

awaitable<void> ask_holders(Shared& shared, ClientExchange& client, Held request) {
  const http::Head& head = client.head();
  std::optional<NotFound> last;
  std::size_t silent = silent_hosts(shared, request.is_kept);
  for (const HostId host : holders(shared, client, request.is_kept)) {
    const RunningOn running(shared.hosts.table(), host);
    auto exchange = co_await begin_exchange(shared, client, host, request.body);
    if (client.stream().is_ended()) co_return;
    if (!exchange) {
      const bool is_unseen = exchange.error().code == Errc::ConnectionRefused;
      if (is_unseen) shared.hosts.table().unreachable(host);
      ++silent;
      if (is_unseen || is_repeatable(head.method, head.path())) continue;
      co_await client.fail(exchange.error());  // the host may have done it
      co_return;
    }
    if (exchange->answer.status != kNotFound) {
      HostAnswer answer{.host = host, .exchange = *std::move(exchange)};
      co_return co_await pass_answer(shared, client, std::move(answer));
    }
    last = co_await read_not_found(shared, host, *std::move(exchange));
    client.stream().on_end(nullptr);
    if (client.stream().is_ended()) co_return;
  }
  co_await answer_not_found(shared, client, request.is_kept, silent, std::move(last));
}

}  // namespace

/// A plain function: the frame of a coroutine here would have types of the anonymous namespace.
awaitable<void> answer_on_holder(Shared& shared, ClientExchange& client, Held request) {
  return ask_holders(shared, client, std::move(request));
}

}  // namespace leasehold::gateway
