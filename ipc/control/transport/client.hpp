/// A blocking control client for programs that wait for their calls: brokerctl, tests, demos.
/// The client ignores notifications.
///
/// Threads: one. A program that also serves calls uses Peer on its own io_context instead.
#pragma once

#include <memory>
#include <string>
#include <vector>

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

  /// Makes calls of one method at the same time, and returns their results in the order of
  /// `params`. Errors of each: as of `call`.
  std::vector<Result<Payload>> call_all(const std::string& method, std::vector<Payload> params,
                                        Duration timeout = std::chrono::seconds(10));

 private:
  struct State;
  explicit Client(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace leasehold::control
