/// A blocking control client for programs that make one call at a time: brokerctl, tests, demos.
/// The client ignores notifications.
///
/// Threads: one. A program that also serves calls uses Peer on its own io_context instead.
#pragma once

#include <memory>
#include <string>

#include "ipc/control/transport/peer.hpp"

namespace leasehold::control {

class Client {
 public:
  /// Errors: as connect_to.
  static Result<Client> connect(const std::string& path, Limits limits = {});
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  /// Errors: the error of the reply, TimedOut, ConnectionLost.
  Result<Payload> call(const std::string& method, Payload params,
                       Duration timeout = std::chrono::seconds(10));

 private:
  struct State;
  explicit Client(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace leasehold::control
