/// The connections to one host: opens them, and keeps those that can serve again.
///
/// Lifetime: `io` and the TLS settings outlive it. Threads: one.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ipc/http/name_lookup.hpp"
#include "ipc/http/tls/tls.hpp"
#include "tools/gateway/host_address.hpp"
#include "tools/gateway/host_connection.hpp"

namespace leasehold::gateway {

inline constexpr std::chrono::milliseconds kConnectTimeout{1'000};

/// An answer that has begun.
struct HostExchange {
  std::shared_ptr<HostConnection> connection;
  HostHead answer;
};

class HostLink {
 public:
  static constexpr std::size_t kMaxIdle = 64;

  HostLink(boost::asio::io_context& io, HostAddress address, http::TlsClient* tls)
      : io_(io), address_(std::move(address)), tls_(tls) {}

  const HostAddress& address() const { return address_; }
  /// The membership of a host of a cell; zero: it has none, and gets no connection. If it changes,
  /// all connections are closed, also those that serve requests.
  void set_incarnation(Incarnation incarnation);

  /// Looks up the host's name, at first and after a connection has failed. One call at a time.
  /// Errors: ConnectionRefused, TimedOut.
  boost::asio::awaitable<Result<void>> resolve(std::chrono::milliseconds timeout);

  using OnConnected = std::function<void(std::shared_ptr<HostConnection>)>;
  /// A request as it is sent.
  struct Call {
    std::string request;
    /// For sending the request, and then for the head of the answer.
    std::chrono::milliseconds timeout;
    bool has_body = true;  ///< The answer has a body; false for HEAD.
    /// The request may reach the host twice without harm. Otherwise it is sent once, on a new
    /// connection: a kept one may be closed by the host at the same moment, and nothing would tell
    /// whether the host has read the request.
    bool is_repeatable = true;
    OnConnected on_connected = {};  ///< Gets the connection first, so that it can be closed.
  };
  /// Sends a request and reads the head of its answer. A kept connection that the host has closed
  /// meanwhile is replaced by a new one. Errors: ConnectionRefused without a connection; those of
  /// HostConnection and http::TlsClient.
  boost::asio::awaitable<Result<HostExchange>> exchange(Call call);
  /// Opens a connection for one request whose caller sends it. Errors: as exchange.
  boost::asio::awaitable<Result<std::shared_ptr<HostConnection>>> connect();
  /// Keeps the connection for a later request if it can serve one, or else closes it.
  void keep(std::shared_ptr<HostConnection> connection);
  /// Closes the connections that serve no request.
  void close_idle();

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Idle {
    std::shared_ptr<HostConnection> connection;
    Time since;
  };

  std::shared_ptr<HostConnection> take_idle();
  boost::asio::awaitable<Result<http::Stream>> connect_socket();
  std::unexpected<Error> refused(std::string_view why) const;
  boost::asio::awaitable<Result<std::shared_ptr<HostConnection>>> open_connection();

  boost::asio::io_context& io_;
  HostAddress address_;
  http::TlsClient* tls_;
  http::NameLookup names_;
  http::Endpoints endpoints_;
  bool must_resolve_ = true;
  std::optional<Incarnation> incarnation_;
  std::vector<std::weak_ptr<HostConnection>> open_;  // of a host of a cell
  std::vector<Idle> idle_;                           // the newest last
};

}  // namespace leasehold::gateway
