#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cerrno>
#include <chrono>
#include <system_error>

#include "common/machine/unique_fd.hpp"
#include "tools/monitor/worker_figures.hpp"

namespace leasehold::monitor {
namespace {

namespace asio = boost::asio;
using Endpoint = asio::generic::stream_protocol::endpoint;
using std::chrono::steady_clock;

constexpr std::size_t kMaxPageBytes = 1 << 20;
constexpr auto kTimeout = std::chrono::seconds(1);

std::string text_of(const http::Address& address) {
  if (!address.unix_path.empty()) return address.unix_path;
  const bool is_v6 = address.ip.contains(':');
  return fmt::format("{}{}{}:{}", is_v6 ? "[" : "", address.ip, is_v6 ? "]" : "", address.port);
}

Endpoint endpoint_of(const http::Address& address) {
  if (!address.unix_path.empty()) return asio::local::stream_protocol::endpoint(address.unix_path);
  return asio::ip::tcp::endpoint(asio::ip::make_address(address.ip), address.port);
}

/// One request over a socket that does not block, with a deadline.
class Request {
 public:
  explicit Request(const http::Address& address) : address_(address) {}

  Result<std::string> run() {
    TRY(connect());
    TRY(write("GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
    return read();
  }

 private:
  Error error(Errc code, const std::string& what) const {
    return {code, fmt::format("{} {}", text_of(address_), what)};
  }
  Error system_error(int number) const {
    Errc code = Errc::SystemError;
    if (number == ECONNREFUSED) code = Errc::ConnectionRefused;
    if (number == ENOENT) code = Errc::FileNotFound;
    if (number == ECONNRESET || number == EPIPE) code = Errc::ConnectionLost;
    return error(code, "does not answer: " + std::generic_category().message(number));
  }

  Result<void> wait_for(short events) const {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline_ - steady_clock::now()).count();
    pollfd entry{.fd = socket_.get(), .events = events, .revents = 0};
    const int ready = left <= 0 ? 0 : ::poll(&entry, 1, static_cast<int>(left));
    if (ready > 0) return {};
    return std::unexpected(ready < 0 ? system_error(errno)
                                     : error(Errc::TimedOut, "does not answer within a second"));
  }

  Result<void> connect() {
    const Endpoint endpoint = endpoint_of(address_);
    socket_ = UniqueFd(
        ::socket(endpoint.protocol().family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket_) return std::unexpected(system_error(errno));
    if (::connect(socket_.get(), endpoint.data(), static_cast<socklen_t>(endpoint.size())) == 0)
      return {};
    if (errno != EINPROGRESS) return std::unexpected(system_error(errno));
    TRY(wait_for(POLLOUT));
    int number = 0;
    socklen_t size = sizeof(number);
    ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &number, &size);
    if (number != 0) return std::unexpected(system_error(number));
    return {};
  }

  Result<void> write(std::string_view text) {
    while (!text.empty()) {
      TRY(wait_for(POLLOUT));
      const ssize_t sent = ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN) return std::unexpected(system_error(errno));
      if (sent > 0) text.remove_prefix(static_cast<std::size_t>(sent));
    }
    return {};
  }

  Result<std::string> read() {
    std::string reply;
    while (true) {
      TRY(wait_for(POLLIN));
      std::array<char, 16'384> bytes;
      const ssize_t got = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
      if (got < 0 && errno != EAGAIN) return std::unexpected(system_error(errno));
      if (got == 0) break;
      if (got > 0) reply.append(bytes.data(), static_cast<std::size_t>(got));
      if (reply.size() > kMaxPageBytes)
        return std::unexpected(error(Errc::MessageTooLarge, "sends more than 1 MiB"));
    }
    const auto end = reply.find("\r\n\r\n");
    if (!reply.starts_with("HTTP/1.1 200 ") || end == std::string::npos) {
      return std::unexpected(error(Errc::MalformedMessage, "does not send a page of metrics: " +
                                                               reply.substr(0, reply.find('\r'))));
    }
    return reply.substr(end + 4);
  }

  const http::Address& address_;
  steady_clock::time_point deadline_ = steady_clock::now() + kTimeout;
  UniqueFd socket_;
};

}  // namespace

Result<std::string> fetch_metrics(const http::Address& address) {
  return Request(address).run();
}

}  // namespace leasehold::monitor
