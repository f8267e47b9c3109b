/// Watches the client of a connection while its request is answered: reads what it sends meanwhile,
/// and notices that it shuts down its sending side or is gone. Internal to worker/http.
///
/// Lifetime: stream and buffer outlive the watch. Threads: the stream's.
#pragma once

#include <functional>
#include <memory>

#include "ipc/http/http_message.hpp"

namespace leasehold::http {

class ClientWatch : public std::enable_shared_from_this<ClientWatch> {
 public:
  ClientWatch(Stream& stream, ReadBuffer& buffer) : stream_(stream), buffer_(buffer) {}

  /// Calls `on_change` when the client shuts down its sending side or is gone, until `stop`.
  void start(std::function<void()> on_change);
  /// Cancels the waits of the watch, and with them all of the socket.
  void stop();

  /// The client has shut down its sending side.
  bool is_at_end() const { return is_at_end_; }
  bool is_gone() const { return is_gone_; }
  /// Records that the client is gone, for a caller that knows what follows from it.
  void note_gone() { is_gone_ = true; }
  /// The same, and calls `on_change`.
  void leave();

 private:
  void await_input();
  void read_input();
  void await_hangup();
  /// Calls `then` unless the watch was stopped, or stopped and started, in the meantime.
  template <class WaitType>
  void wait(WaitType type, void (ClientWatch::*then)());

  Stream& stream_;
  ReadBuffer& buffer_;
  std::function<void()> on_change_;  // null: not started
  int number_ = 0;                   // number of the start
  bool is_at_end_ = false;
  bool is_gone_ = false;
};

}  // namespace leasehold::http
