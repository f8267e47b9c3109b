/// Asks the broker what this host is, for its beats, and drains its workers when an operator wants
/// that.
///
/// Lifetime: all that it is given outlives it. Threads: one.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <utility>

#include "tools/cell/broker_link.hpp"
#include "tools/cell/decide/host_facts.hpp"

namespace leasehold::cell {

class HostState {
 public:
  /// `on_new_models`: gateways should learn at once what this one serves.
  HostState(boost::asio::io_context& io, BrokerLink& broker, std::function<void()> on_new_models)
      : io_(io), broker_(broker), on_new_models_(std::move(on_new_models)) {}

  /// Whether all workers of this host drain. Workers that attach later follow with the next `ask`.
  void set_draining(bool is_draining);
  /// Workers drain, or drained ones have not been undrained yet.
  bool has_drained() const { return is_draining_ || is_undrain_due_; }
  /// Asks the broker, unless it is being asked.
  void ask();
  /// What it said last. Nothing is announced of a host whose broker is away.
  HostFacts facts() const { return broker_.is_connected() ? facts_ : HostFacts(); }

 private:
  boost::asio::awaitable<void> refresh();
  boost::asio::awaitable<Result<void>> read_facts();
  boost::asio::awaitable<Result<void>> change_workers(const std::vector<wire::WorkerView>& workers);

  boost::asio::io_context& io_;
  BrokerLink& broker_;
  std::function<void()> on_new_models_;
  HostFacts facts_;
  bool is_draining_ = false;
  bool is_undrain_due_ = false;
  bool is_asking_ = false;
  std::uint64_t audit_sequence_ = 0;  // of the newest audit record that is known
};

}  // namespace leasehold::cell
