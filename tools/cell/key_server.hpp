/// The socket at which workers of this host ask the agent for keys that their broker does not know,
/// and say whose part is used up and whose text has moved here.
///
/// A call proves nothing and gives nothing but that the broker learns a key of the cell: a worker
/// still asks the broker about each key. A worker that names a wrong host takes a tenant's part
/// from that host for this one, within the tenant's limits. Lifetime: `io` and the server's
/// functions outlive the run of `io`. Threads: the one that runs `io`.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ipc/control/messages/cell/agent_calls.hpp"
#include "ipc/control/transport/peer.hpp"

namespace leasehold::cell {

class KeyServer {
 public:
  static constexpr std::size_t kMaxConnections = 256;
  static constexpr std::size_t kMaxCalls = 1'024;  ///< Of all connections together.
  using Resolve = std::function<boost::asio::awaitable<Result<void>>(wire::KeyResolve asked)>;
  using Want = std::function<void(const wire::PartWant& wanted)>;

  KeyServer(boost::asio::io_context& io, Resolve resolve, Want want)
      : io_(io), resolve_(std::move(resolve)), want_(std::move(want)) {}

  /// Listens for users of the socket's group. Errors: those of control::listen_on.
  Result<void> listen(const std::string& path);

 private:
  using Acceptor = boost::asio::local::stream_protocol::acceptor;
  boost::asio::awaitable<void> accept();
  void add(control::Socket socket);
  void answer(const std::string& method, const control::Payload& params,
              control::Responder respond);
  void note(const std::string& method, const control::Payload& params);
  boost::asio::awaitable<void> resolve(wire::KeyResolve asked, control::Responder respond);

  boost::asio::io_context& io_;
  Resolve resolve_;
  Want want_;
  std::unique_ptr<Acceptor> acceptor_;
  std::vector<std::weak_ptr<control::Peer>> peers_;
  std::size_t calls_ = 0;
};

}  // namespace leasehold::cell
