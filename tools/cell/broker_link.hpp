/// The agent's connection to the broker of its host.
///
/// Errors of calls: the broker's, TimedOut, ConnectionLost also without a connection. Lifetime:
/// `io` outlives it. Threads: the one that runs `io`.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <string>
#include <vector>

#include "common/clock.hpp"
#include "ipc/client/all_pages.hpp"
#include "ipc/client/broker_connection.hpp"

namespace leasehold::cell {

class BrokerLink {
 public:
  static constexpr Duration kCallTimeout = std::chrono::seconds(2);

  using OnNotification = std::function<void(const std::string& method, const wire::Json& params)>;

  BrokerLink(boost::asio::io_context& io, std::string socket, OnNotification on_notification)
      : io_(io),
        connection_(io, std::move(socket)),
        on_notification_(std::move(on_notification)),
        ended_(io) {}
  ~BrokerLink() { close(); }

  /// Connects, in place of an earlier connection. Errors: those of control::connect_to.
  Result<void> connect();
  bool is_connected() const { return connection_.is_open(); }
  void close();
  /// Waits until the connection has ended.
  boost::asio::awaitable<void> until_closed();

  template <class Message>
  boost::asio::awaitable<Result<wire::Json>> call(const Message& message) {
    return call(std::string(Message::kMethod), message.to_json());
  }
  boost::asio::awaitable<Result<wire::Json>> call(std::string method, wire::Json params);
  /// Calls without waiting. Calls arrive at the broker in their order.
  void send(std::string method, wire::Json params, control::Peer::ReplyHandler on_reply);

  /// Returns every element of a list. Errors: also those of client::Pages.
  template <class View>
  boost::asio::awaitable<Result<std::vector<View>>> list() {
    client::Pages<View> pages;
    while (true) {
      auto params = pages.next_params();
      if (!params) co_return std::unexpected(params.error());
      const auto reply =
          co_await call(std::string(client::PagedList<View>::kMethod), *std::move(params));
      if (!reply) co_return std::unexpected(reply.error());
      const auto continues = pages.add(*reply);
      if (!continues) co_return std::unexpected(continues.error());
      if (!*continues) co_return std::move(pages.all());
    }
  }

 private:
  boost::asio::io_context& io_;
  client::BrokerConnection connection_;
  OnNotification on_notification_;
  boost::asio::steady_timer ended_;
};

}  // namespace leasehold::cell
