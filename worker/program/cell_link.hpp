/// The link of the worker's HTTP door with the agent of its host's cell: asks for keys that the
/// broker does not know, and says when a tenant's part is used up.
///
/// Threads: `check` and `want_part` from any. Lifetime: the broker link and the clock outlive it;
/// `io` is stopped before.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/clock.hpp"
#include "ipc/control/messages.hpp"
#include "worker/lease/broker_link.hpp"

namespace leasehold {

class CellLink : public std::enable_shared_from_this<CellLink> {
 public:
  /// The host of the cell that has written the text so far; nothing: the text begins here.
  using MovedFrom = std::optional<HostName>;
  using OnChecked = std::move_only_function<void(Result<wire::KeyOwner>)>;
  using OnResolved = std::move_only_function<void(Result<void>)>;

  /// How long a request with an unknown key waits for the agent. The agent goes on, so the next
  /// request with the key finds it.
  static constexpr Duration kResolveTimeout = std::chrono::milliseconds(200);

  /// `agent`: the socket of leasehold-cell; empty: this host is in no cell.
  CellLink(boost::asio::io_context& io, const Clock& clock, BrokerLink& broker, std::string agent)
      : io_(io), clock_(clock), broker_(broker), agent_(std::move(agent)) {}

  /// Checks a key with the broker. `done` is called once. Errors: those of `key.check`, and of
  /// `key.resolve` for a key that the broker does not know; CellLost if the agent does not answer
  /// in time.
  void check(wire::KeyCheck key, MovedFrom moved_from, OnChecked done);
  /// A request of the tenant was refused because a limit is used up, or its text has moved here.
  void want_part(wire::PartWant wanted);

 private:
  void ask_broker(const wire::KeyCheck& key, OnChecked done);
  void ask_agent(wire::KeyResolve asked, OnResolved done);
  void send_want(const wire::PartWant& wanted);
  Result<void> connect();

  boost::asio::io_context& io_;
  const Clock& clock_;
  BrokerLink& broker_;
  std::string agent_;
  std::shared_ptr<control::Peer> peer_;  // of the agent, on `io_`
  // When the agent was last notified of a tenant and a host, on `io_`.
  std::map<std::pair<TenantId, MovedFrom>, TimePoint> wanted_;
};

}  // namespace leasehold
