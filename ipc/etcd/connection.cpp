#include "ipc/etcd/connection.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/beast/http/error.hpp>
#include <utility>
#include <vector>

#include "common/expects.hpp"
#include "common/machine/close_on_exec.hpp"
#include "ipc/http/early_end.hpp"

namespace leasehold::etcd {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::awaitable;
using http::kAwait;

/// A watch may be silent for hours. The system finds within four seconds that the member is gone.
constexpr int kKeepAliveSeconds = 1;
constexpr int kKeepAliveProbes = 3;

void keep_alive(int fd) {
  const int on = 1;
  (void)::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &kKeepAliveSeconds, sizeof(int));
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &kKeepAliveSeconds, sizeof(int));
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &kKeepAliveProbes, sizeof(int));
}

std::string text_of(const GatewayRequest& request, std::string_view host) {
  std::string text = fmt::format(
      "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
      request.target, host, request.body.size());
  if (!request.token.empty()) text += fmt::format("Authorization: {}\r\n", request.token);
  if (request.requires_leader) text += "Grpc-Metadata-hasleader: true\r\n";
  return text.append("\r\n").append(request.body);
}

/// Performs the handshake of an encrypted member. A member that hangs still accepts connections, so
/// its handshake ends as soon as a call would.
awaitable<Result<std::unique_ptr<http::ByteStream>>> begin_bytes(
    http::Stream stream, const MemberAddress& address, http::TlsClient* tls,
    std::chrono::milliseconds timeout) {
  if (!address.is_encrypted)
    co_return std::make_unique<http::PlainStream<http::Stream>>(std::move(stream));
  expects(tls != nullptr, "the authorities of an encrypted member are loaded");
  auto encrypted = co_await tls->connect(std::move(stream), address.url.host, timeout);
  if (encrypted) co_return encrypted;
  Error error = encrypted.error();
  error.detail = fmt::format("etcd at {}: {}", address.text, error.detail);
  co_return std::unexpected(std::move(error));
}

}  // namespace

std::unexpected<Error> Connection::failed(const beast::error_code& error) const {
  const Errc code = http::code_of_read(error);
  const std::string_view advice = code == Errc::MalformedMessage || code == Errc::MessageTooLarge
                                      ? "check that the address is that of an etcd 3.4 or newer"
                                      : "check that this member runs and is reachable";
  std::string why = error.message();
  if (code == Errc::TimedOut) why = "it does not answer in time";
  if (http::is_early_end(error)) why = "it closed the connection before the end of its answer";
  return fail(code, fmt::format("etcd at {}: {}; {}", member_, why, advice));
}

awaitable<Result<Connection::Ptr>> Connection::open(const MemberAddress& address,
                                                    const http::Endpoints& endpoints,
                                                    http::TlsClient* tls,
                                                    std::chrono::milliseconds timeout) {
  std::vector<asio::generic::stream_protocol::endpoint> all;
  if (!address.unix_path.empty())
    all.emplace_back(asio::local::stream_protocol::endpoint(address.unix_path));
  for (const auto& endpoint : endpoints) all.emplace_back(endpoint);
  const auto executor = co_await asio::this_coro::executor;
  Error error{Errc::ConnectionRefused, fmt::format("etcd at {}: it has no address", address.text)};
  for (const auto& endpoint : all) {
    http::Stream stream(executor);
    stream.expires_after(timeout);
    const auto [refused] = co_await stream.async_connect(endpoint, kAwait);
    if (!refused) {
      const int socket = stream.socket().native_handle();
      set_close_on_exec(socket);
      if (address.unix_path.empty()) keep_alive(socket);
      auto bytes = co_await begin_bytes(std::move(stream), address, tls, timeout);
      if (!bytes) co_return std::unexpected(bytes.error());
      co_return std::make_shared<Connection>(*std::move(bytes), socket, address);
    }
    error.code = refused == beast::error::timeout ? Errc::TimedOut : Errc::ConnectionRefused;
    error.detail = fmt::format("etcd at {}: {}; check that this member runs and is reachable",
                               address.text, refused.message());
  }
  co_return std::unexpected(std::move(error));
}

awaitable<Result<void>> Connection::send(GatewayRequest request) {
  reader_.reset();
  rest_.clear();
  const std::string text = text_of(request, authority_);
  const http::Transfer sent = co_await stream_->write(asio::buffer(text));
  if (sent.error) co_return failed(sent.error);
  co_return Result<void>();
}

/// Parses what is there, or reads more.
awaitable<Result<void>> Connection::parse_more() {
  beast::error_code error = reader_.parse();
  if (!error) co_return Result<void>();
  if (error != beast::http::error::need_more) co_return failed(error);
  const asio::mutable_buffer room = reader_.room();
  if (room.size() == 0) co_return failed(beast::http::error::buffer_overflow);
  error = reader_.received(co_await stream_->read_some(room));
  if (error) co_return failed(error);
  co_return Result<void>();
}

awaitable<Result<int>> Connection::read_head() {
  http::AnswerReader::Parser& parser = reader_.begin();
  parser.body_limit(boost::none);  // pieces are taken at once and counted by the caller
  while (!parser.is_header_done()) {
    const Result<void> parsed = co_await parse_more();
    if (!parsed) co_return std::unexpected(parsed.error());
  }
  co_return static_cast<int>(parser.get().result_int());
}

/// The next bytes of the body; empty at its end.
awaitable<Result<std::string>> Connection::read_piece() {
  while (reader_.lacks_piece()) {
    const Result<void> parsed = co_await parse_more();
    if (!parsed) co_return std::unexpected(parsed.error());
  }
  co_return reader_.take_piece();
}

awaitable<Result<std::string>> Connection::read_body(std::size_t max_bytes) {
  std::string whole;
  while (true) {
    auto piece = co_await read_piece();
    if (!piece) co_return piece;
    if (piece->empty()) co_return whole;
    whole += *piece;
    if (whole.size() > max_bytes) co_return failed(beast::http::error::body_limit);
  }
}

awaitable<Result<std::string>> Connection::read_line(std::size_t max_bytes) {
  std::size_t searched = 0;
  while (true) {
    const std::size_t end = rest_.find('\n', searched);
    if (end != std::string::npos) {
      std::string line = rest_.substr(0, end);
      rest_.erase(0, end + 1);
      co_return line;
    }
    if (rest_.size() > max_bytes) co_return failed(beast::http::error::body_limit);
    searched = rest_.size();
    auto piece = co_await read_piece();
    if (!piece) co_return piece;
    if (piece->empty()) co_return failed(beast::http::error::end_of_stream);
    rest_ += *piece;
  }
}

bool Connection::is_reusable() {
  if (socket_ < 0 || !reader_.is_reusable()) return false;
  char byte = 0;
  const ssize_t seen = ::recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return seen < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

void Connection::close() {
  socket_ = -1;
  stream_->close();
}

}  // namespace leasehold::etcd
