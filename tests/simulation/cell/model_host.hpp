/// A host: the real decisions of its agent, and a modelled broker with workers.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "tests/simulation/cell/network.hpp"
#include "tools/cell/decide/membership.hpp"
#include "tools/cell/decide/tenant_part.hpp"

namespace leasehold::cell::simulation {

/// The terms of one schedule.
struct Terms {
  CellKeys keys{CellName{"sim"}};
  TenantId tenant{"ann"};
  CellConfig config;
  Share limits;
};

class ModelHost {
 public:
  ModelHost(Network& network, const Terms& terms, Machine machine);

  /// Begins its loops.
  void start();
  /// Its link to etcd.
  void set_cut(bool is_cut) { agent_.is_cut = is_cut; }
  /// A later end of an earlier stop holds.
  void stop(TimePoint until) {
    machine_.stopped_until = std::max(machine_.stopped_until, until);
    stop_agent(until);
  }
  /// The agent's process alone stops; the broker goes on.
  void stop_agent(TimePoint until) { agent_.stopped_until = std::max(agent_.stopped_until, until); }
  /// The agent is killed and started again; with its runtime directory or without.
  void restart_agent(bool keeps_directory);
  /// The last fault has passed: the demand stays.
  void settle() { is_settling_ = true; }

  HostName name() const { return {machine_.name}; }
  /// What its workers may run now.
  Share may_run() const;
  /// The membership for which the broker has its limits.
  std::optional<PartOwner> served_as() const { return served_as_; }
  bool is_member() const { return membership_->is_member(); }
  const Share& demand() const { return demand_; }

 private:
  // The agent.
  void beat();
  void beaten(const Result<MembershipChange>& change, bool was_refused);
  void work();
  void watch_mail();
  void finish_call(const std::function<void()>& finish);
  void push_limit();
  void push_ceiling();
  void tell_broker(std::function<void()> message);
  // The broker.
  Share may_run_at_broker() const;
  void end_leases();
  void renew();
  void serve();
  /// A time of a cell with a TTL of 6 s, in this cell.
  Duration scaled(std::int64_t least_ms, std::int64_t most_ms);

  Network& network_;
  const Terms& terms_;
  Machine machine_;
  Machine agent_;  // stops with the machine, and alone
  std::optional<Membership> membership_;
  TenantPart part_;
  std::optional<SavedMembership> file_;
  Share demand_;
  bool is_beating_ = false;
  bool is_calling_ = false;
  bool is_settling_ = false;
  std::uint64_t process_ = 0;  // of the agent
  std::uint64_t pushed_ = 0;   // revision of the limit
  TimePoint broker_hears_;     // messages to the broker stay in order

  // The broker and its workers.
  BrokerLimit broker_limit_;
  Share running_;
  TimePoint broker_ceiling_;
  TimePoint deadline_;  // of the leases, on this machine's clock
  std::optional<PartOwner> served_as_;
};

}  // namespace leasehold::cell::simulation
