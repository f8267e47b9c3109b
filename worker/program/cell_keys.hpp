/// Checks the keys of HTTP clients with the broker, and asks the agent of the host's cell for those
/// that the broker does not know.
///
/// Threads: `check` from any. Lifetime: the broker link outlives it; `io` is stopped before.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "ipc/control/messages.hpp"
#include "worker/lease/broker_link.hpp"

namespace leasehold {

class CellKeys : public std::enable_shared_from_this<CellKeys> {
 public:
  using OnChecked = std::move_only_function<void(Result<wire::KeyOwner>)>;
  using OnResolved = std::move_only_function<void(Result<void>)>;

  /// `agent`: the socket of leasehold-cell; empty: this host is in no cell.
  CellKeys(boost::asio::io_context& io, BrokerLink& broker, std::string agent)
      : io_(io), broker_(broker), agent_(std::move(agent)) {}

  /// `done` is called once. Errors: those of `key.check`, and of `key.resolve` for a key that the
  /// broker does not know.
  void check(std::string api_key, OnChecked done);

 private:
  void ask_broker(const std::string& api_key, OnChecked done);
  void ask_agent(std::string hash, OnResolved done);

  boost::asio::io_context& io_;
  BrokerLink& broker_;
  std::string agent_;
  std::shared_ptr<control::Peer> peer_;  // of the agent, on `io_`
};

}  // namespace leasehold
