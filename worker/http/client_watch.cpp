#include "worker/http/client_watch.hpp"

#include <boost/asio/error.hpp>
#include <utility>

namespace leasehold::http {

namespace beast = boost::beast;
using Socket = boost::asio::generic::stream_protocol::socket;

void ClientWatch::start(std::function<void()> on_change) {
  on_change_ = std::move(on_change);
  ++number_;
  await_input();
  await_hangup();
}

void ClientWatch::stop() {
  if (!on_change_) return;
  on_change_ = nullptr;
  beast::error_code ignored;
  stream_.socket().cancel(ignored);
}

void ClientWatch::leave() {
  is_gone_ = true;
  if (on_change_) on_change_();
}

template <class WaitType>
void ClientWatch::wait(WaitType type, void (ClientWatch::*then)()) {
  stream_.socket().async_wait(
      type, [weak = weak_from_this(), number = number_, then](const beast::error_code& error) {
        const auto self = weak.lock();
        if (self && !error && self->on_change_ && self->number_ == number) (self.get()->*then)();
      });
}

void ClientWatch::await_input() {
  wait(Socket::wait_read, &ClientWatch::read_input);
}

/// Reads the next requests, as far as the buffer has room.
void ClientWatch::read_input() {
  if (buffer_.size() >= kMaxHeadBytes) return;
  beast::error_code error;
  const auto room = buffer_.prepare(kMaxHeadBytes - buffer_.size());
  buffer_.commit(stream_.socket().read_some(room, error));
  if (!error || error == boost::asio::error::would_block) return await_input();
  if (error != boost::asio::error::eof) return leave();
  is_at_end_ = true;
  on_change_();
}

/// Notices a reset, and a client that has closed its Unix socket.
void ClientWatch::await_hangup() {
  wait(Socket::wait_error, &ClientWatch::leave);
}

}  // namespace leasehold::http
