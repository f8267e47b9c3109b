#include "tools/gateway/host_link.hpp"

#include <fmt/format.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <utility>

#include "common/machine/close_on_exec.hpp"

namespace leasehold::gateway {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::awaitable;

/// Below the time after which a worker closes a connection between two requests of a key.
constexpr std::chrono::seconds kMaxIdleTime{50};

}  // namespace

std::unexpected<Error> HostLink::refused(std::string_view why) const {
  return fail(Errc::ConnectionRefused, fmt::format("host {}: {}", address_.text, why));
}

awaitable<Result<void>> HostLink::resolve(std::chrono::milliseconds timeout) {
  if (!address_.unix_path.empty() || !must_resolve_) co_return Result<void>();
  auto found = co_await names_.find(address_.url, timeout);
  if (!found) co_return std::unexpected(found.error());
  endpoints_ = *std::move(found);
  must_resolve_ = false;
  co_return Result<void>();
}

std::shared_ptr<HostConnection> HostLink::take_idle() {
  const Time oldest = std::chrono::steady_clock::now() - kMaxIdleTime;
  std::erase_if(idle_, [&](const Idle& idle) { return idle.since < oldest; });
  if (idle_.empty()) return nullptr;
  auto connection = std::move(idle_.back().connection);
  idle_.pop_back();
  return connection;
}

void HostLink::keep(std::shared_ptr<HostConnection> connection) {
  if (!connection->is_reusable() || idle_.size() >= kMaxIdle) return connection->close();
  idle_.push_back({std::move(connection), std::chrono::steady_clock::now()});
}

void HostLink::close_idle() {
  for (const Idle& idle : std::exchange(idle_, {})) idle.connection->close();
}

awaitable<Result<http::Stream>> HostLink::connect_socket() {
  std::vector<asio::generic::stream_protocol::endpoint> endpoints;
  if (!address_.unix_path.empty())
    endpoints.emplace_back(asio::local::stream_protocol::endpoint(address_.unix_path));
  for (const auto& endpoint : endpoints_) endpoints.emplace_back(endpoint);
  std::string why = "its name is not resolved yet";
  for (const auto& endpoint : endpoints) {
    http::Stream stream(io_);
    stream.expires_after(kConnectTimeout);
    const auto [error] = co_await stream.async_connect(endpoint, http::kAwait);
    if (!error) {
      set_close_on_exec(stream.socket().native_handle());
      beast::error_code ignored;
      if (address_.unix_path.empty())
        stream.socket().set_option(asio::ip::tcp::no_delay(true), ignored);
      stream.expires_never();
      co_return std::move(stream);
    }
    why = error.message();
  }
  must_resolve_ = true;  // its name may have another address now
  co_return refused(why);
}

void HostLink::set_incarnation(Incarnation incarnation) {
  if (std::exchange(incarnation_, incarnation) == incarnation) return;
  close_idle();
  for (const auto& each : std::exchange(open_, {}))
    if (const auto connection = each.lock()) connection->close();
}

awaitable<Result<std::shared_ptr<HostConnection>>> HostLink::connect() {
  if (incarnation_ == Incarnation{}) co_return refused("it has left its cell");
  const std::optional<Incarnation> incarnation = incarnation_;
  auto opened = co_await open_connection();
  if (!opened) co_return opened;
  if (incarnation != incarnation_) {
    (*opened)->close();
    co_return refused("it has left its cell, or joined it again");
  }
  if (incarnation_) {
    std::erase_if(open_, [](const auto& each) { return each.expired(); });
    open_.push_back(*opened);
  }
  co_return opened;
}

awaitable<Result<std::shared_ptr<HostConnection>>> HostLink::open_connection() {
  auto stream = co_await connect_socket();
  if (!stream) co_return std::unexpected(stream.error());
  std::unique_ptr<http::ByteStream> bytes;
  if (address_.is_encrypted) {
    auto encrypted = co_await tls_->connect(*std::move(stream), address_.url.host);
    if (!encrypted) {
      Error error = encrypted.error();
      error.detail = fmt::format("host {}: {}", address_.text, error.detail);
      co_return std::unexpected(std::move(error));
    }
    bytes = *std::move(encrypted);
  } else {
    bytes = std::make_unique<http::PlainStream<http::Stream>>(*std::move(stream));
  }
  co_return std::make_shared<HostConnection>(std::move(bytes), address_.text, incarnation_);
}

awaitable<Result<HostExchange>> HostLink::exchange(Call call) {
  const std::optional<Incarnation> incarnation = incarnation_;
  while (true) {
    std::shared_ptr<HostConnection> connection;
    if (call.is_repeatable) connection = take_idle();
    const bool is_kept = connection != nullptr;
    if (!is_kept) {
      auto opened = co_await connect();
      if (!opened) co_return std::unexpected(opened.error());
      connection = *std::move(opened);
    }
    if (call.on_connected) call.on_connected(connection);
    const Result<void> sent = co_await connection->send(call.request, call.timeout);
    Error error{Errc::ConnectionLost, {}};
    if (sent) {
      auto head = co_await connection->read_head(call.has_body, call.timeout);
      if (head) {
        HostExchange exchange{.connection = std::move(connection), .answer = *std::move(head)};
        co_return exchange;
      }
      error = head.error();
    } else {
      error = sent.error();
    }
    const bool was_closed =
        is_kept && error.code == Errc::ConnectionLost && !connection->has_answered();
    connection->close();
    if (!was_closed || incarnation != incarnation_) co_return std::unexpected(std::move(error));
  }
}

}  // namespace leasehold::gateway
