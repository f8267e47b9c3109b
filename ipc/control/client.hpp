/// A blocking control client for programs that ask one thing at a time: brokerctl, tests, demos.
///
/// Threads: one. For programs that also listen, use Peer on an io_context of their own.
#pragma once

#include <memory>
#include <string>

#include "ipc/control/peer.hpp"

namespace leasehold::control {

class Client {
 public:
  /// Errors: those of connect_to.
  static Result<Client> connect(const std::string& path, Limits limits = {});
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  /// Errors: what the other end answered, TimedOut, ConnectionLost.
  Result<Payload> call(const std::string& method, Payload params,
                       Duration timeout = std::chrono::seconds(10));

  /// The next notification. TimedOut when none came; ConnectionLost when the peer is gone.
  struct Notification {
    std::string method;
    Payload params;
  };
  Result<Notification> next_notification(Duration timeout);

 private:
  struct State;
  explicit Client(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace leasehold::control
