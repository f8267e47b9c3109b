/// A host: its machine, its broker, its worker and its agent.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "tests/simulation/cell/host_agent.hpp"
#include "tests/simulation/cell/host_worker.hpp"

namespace leasehold::cell::simulation {

class ModelHost {
 public:
  struct Links {
    std::function<void(std::vector<TextNews>)> send_news;
    std::function<void(std::size_t tenant, const PartOwner&)> committed;
  };

  ModelHost(Network& network, const Terms& terms, Machine machine, Links links);

  void start();
  void set_cut(bool is_cut) { agent_machine_.is_cut = is_cut; }
  /// Its link to gateways.
  void set_unlinked(bool is_unlinked) { is_unlinked_ = is_unlinked; }
  bool is_unlinked() const { return is_unlinked_; }
  /// A later end of an earlier stop holds.
  void stop(TimePoint until);
  void stop_agent(TimePoint until);
  void stop_broker(TimePoint until);
  void restart_agent(bool keeps_directory) { agent_.restart(keeps_directory); }
  void restart_broker();

  void begin(StartText text);
  void cancel(std::uint64_t attempt);
  void etcd_changed() { agent_.etcd_changed(); }

  HostName name() const { return {machine_.name}; }
  bool is_member() const { return agent_.is_member(); }
  const HostWorker& worker() const { return worker_; }

 private:
  Network& network_;
  Machine machine_;
  Machine agent_machine_;   // stops with the machine, and alone
  Machine broker_machine_;  // likewise
  BrokerProcess broker_;
  HostAgent agent_;
  HostWorker worker_;
  bool is_unlinked_ = false;
};

}  // namespace leasehold::cell::simulation
