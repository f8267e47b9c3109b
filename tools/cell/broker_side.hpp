/// The agent's work for the broker of its host: says until when the cell's tenants may run, and
/// gives it the parts of their limits.
///
/// The broker may be absent or start again at any time. Leases then end at the ceiling that it had.
///
/// Lifetime: all that it is given outlives it. Threads: one.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <optional>
#include <string>

#include "common/clock.hpp"
#include "ipc/etcd/client.hpp"
#include "tools/cell/broker_link.hpp"
#include "tools/cell/host_state.hpp"
#include "tools/cell/host_tenants.hpp"
#include "tools/cell/key_server.hpp"
#include "tools/cell/options.hpp"

namespace leasehold::cell {

class BrokerSide {
 public:
  BrokerSide(boost::asio::io_context& io, const Clock& clock, etcd::Client& etcd,
             const Options& options, std::function<void()> on_new_models);

  /// Connects, and serves workers. Errors: those of KeyServer::listen.
  Result<void> start();
  /// What the newest beat says. `owner` is empty outside of a membership; then `ceiling` is zero,
  /// and the broker revokes the leases of the cell's tenants.
  void set_membership(std::optional<PartOwner> owner, TimePoint ceiling);
  /// What the cell's config says of moved texts; Strict until it is called.
  void set_moves(MovePolicy moves) { moves_ = moves; }
  /// True if the broker has answered nothing for at least this time, counted from `start` at first.
  bool is_lost_for(Duration time) const;
  /// What this host is and does; asks the broker for its beats.
  HostState& state() { return state_; }
  const HostState& state() const { return state_; }

 private:
  boost::asio::awaitable<void> keep_connected();
  boost::asio::awaitable<Result<void>> attach();
  boost::asio::awaitable<void> probe();
  template <class Call>
  Call allowed(Call call) const;
  void send_ceiling();
  void report_lost(const Error& error);

  boost::asio::io_context& io_;
  const Clock& clock_;
  const Options& options_;
  BrokerLink broker_;
  HostTenants tenants_;
  HostState state_;
  KeyServer keys_;
  MovePolicy moves_ = MovePolicy::Strict;
  std::optional<PartOwner> owner_;
  TimePoint ceiling_;
  std::optional<Errc> lost_;                   // why the broker cannot be used
  std::optional<TimePoint> unanswered_since_;  // when the oldest ceiling without a reply was due
};

}  // namespace leasehold::cell
