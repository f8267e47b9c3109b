/// The connection of a tenant, or of the agent of a cell, to the broker. At most one is open at a
/// time.
///
/// Lifetime: the io_context outlives it. Threads: only the thread that runs the io_context.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>
#include <utility>

#include "ipc/control/transport/peer.hpp"

namespace leasehold::client {

class BrokerConnection {
 public:
  BrokerConnection(boost::asio::io_context& io, std::string path)
      : io_(io), path_(std::move(path)) {}

  bool is_open() const { return peer_ != nullptr; }
  const std::string& path() const { return path_; }
  /// Whether `number`, which `next_number` returned, is that of the open connection.
  bool is_open(int number) const { return is_open() && number == number_; }

  /// The number of the connection that `open` makes next. A handler that keeps it can recognise a
  /// late notice about an earlier connection.
  int next_number() { return ++number_; }
  /// Precondition: not open. Until `close` the connection counts as open, also after it has ended.
  /// Errors: as control::connect_to.
  Result<void> open(control::Peer::Handlers handlers) {
    peer_ = control::Peer::create(TRY(control::connect_to(io_, path_)), std::move(handlers));
    peer_->start();
    return {};
  }
  void close() {
    if (const auto peer = std::exchange(peer_, nullptr)) peer->close();
  }
  /// Closes without sending what is queued, so calls that run fail now.
  void close_now() {
    if (const auto peer = std::exchange(peer_, nullptr)) peer->close_now();
  }

  /// Precondition: open.
  template <class Message>
  void call(const Message& message, Duration timeout, control::Peer::ReplyHandler on_reply) {
    call(std::string(Message::kMethod), message.to_json(), timeout, std::move(on_reply));
  }
  void call(const std::string& method, control::Json params, Duration timeout,
            control::Peer::ReplyHandler on_reply) {
    peer_->call(method, {.body = std::move(params)}, std::move(on_reply), timeout);
  }

 private:
  boost::asio::io_context& io_;
  std::string path_;
  std::shared_ptr<control::Peer> peer_;
  int number_ = 0;
};

}  // namespace leasehold::client
