/// Leaves a host that has fallen silent while it serves a request without beats.
///
/// Hosts send beats in texts only. For other requests the reports that the gateway asks for twice a
/// second are the beats: a host that is frozen, or whose link is down, answers neither.
///
/// Threads: one.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/gateway/client_exchange.hpp"
#include "tools/gateway/shared.hpp"
#include "tools/gateway/signal.hpp"

namespace leasehold::gateway {

/// One request at one host. Its connection is closed when the client leaves, when the gateway cuts
/// what outlasts its drain, and when the host is silent while another one can take the request.
///
/// Lifetime: `shared` and `client` outlive it.
class HostWatch {
 public:
  struct Request {
    HostId host;
    std::string model = {};            ///< Empty: any host will do.
    std::vector<HostId> without = {};  ///< Other hosts that it does not go to.
    bool may_move = false;             ///< Otherwise a silent host is not left.
  };

  HostWatch(Shared& shared, ClientExchange& client, Request request);
  ~HostWatch();
  HostWatch(const HostWatch&) = delete;
  HostWatch& operator=(const HostWatch&) = delete;

  HostId host() const;
  /// For HostLink::Call. It closes a connection at once that comes too late.
  HostLink::OnConnected on_connected() const;
  /// The answer has ended, so another request may use the connection: it is closed no more.
  void release();
  /// Why the connection was closed, if the host fell silent.
  const std::optional<Error>& silence() const;

 private:
  struct State;
  static boost::asio::awaitable<void> watch(std::shared_ptr<State> state);

  ClientExchange& client_;
  std::shared_ptr<State> state_;
};

}  // namespace leasehold::gateway
