/// Keeps this host a member of its cell, gives the broker its ceiling, and reports its state in the
/// log.
///
/// Lifetime: `io` and `clock` outlive the agent. Threads: the one that runs `io`.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <string>

#include "common/clock.hpp"
#include "ipc/etcd/client.hpp"
#include "tools/cell/broker_side.hpp"
#include "tools/cell/decide/membership.hpp"
#include "tools/cell/decide/silent_hosts.hpp"
#include "tools/cell/membership_file.hpp"
#include "tools/cell/options.hpp"

namespace leasehold::cell {

class Agent {
 public:
  /// Errors: those of MembershipFile::open.
  static Result<std::unique_ptr<Agent>> create(boost::asio::io_context& io, const Clock& clock,
                                               Options options);

  /// Joins and beats until `io` stops. Errors: those of BrokerSide::start.
  Result<void> start();

 private:
  Agent(boost::asio::io_context& io, const Clock& clock, Options options, MembershipFile file);

  boost::asio::awaitable<void> run();
  boost::asio::awaitable<void> read_config();
  boost::asio::awaitable<void> beat();
  bool has_lost_broker();
  HostRecord next_record();
  Result<void> save() const;
  void beat_soon();
  boost::asio::awaitable<void> expire_own_name(const etcd::TransactionReply& refusal);
  boost::asio::awaitable<void> pause(Duration time);
  void resume();
  void enter(MembershipChange change);
  void obey_operator();
  void tell_broker() { broker_.set_membership(membership_.owner(), membership_.ceiling()); }
  void report_member() const;
  void report_lost(const Error& error);
  void report_ceiling();
  Duration time_to_next_beat() const;
  Duration until_ceiling(Duration time) const;

  const Clock& clock_;
  Options options_;
  CellKeys keys_;
  MembershipFile file_;
  etcd::Client etcd_;          // for beats only, so that no other call makes one wait
  etcd::Client tenants_etcd_;  // calls for tenants and keys; many may run
  BrokerSide broker_;
  boost::asio::steady_timer timer_;
  CellConfig config_;
  Membership membership_;
  std::optional<SilentHosts> own_name_;  // while another process has it
  std::optional<Errc> lost_;             // why etcd cannot be used
  bool is_past_ceiling_ = false;
  bool is_draining_ = false;
  bool has_news_ = false;  // the next beat is due at once
};

}  // namespace leasehold::cell
