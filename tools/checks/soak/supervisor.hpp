/// One broker, some workers and tenants, each started again when it ends, and all that they wrote.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "common/clock.hpp"
#include "tools/checks/demo/poller.hpp"
#include "tools/checks/soak/process_slot.hpp"
#include "tools/checks/soak/workload.hpp"
#include "tools/local_system/fd_store.hpp"

namespace leasehold::soak {

struct WorkerSlot {
  ProcessSlot process;
  std::string name;
  std::size_t instance = 0;  ///< Index in the history.
  bool ready = false;
};

struct TenantSlot {
  ProcessSlot process;
  const TenantSpec* spec = nullptr;
  demo::LineBuffer lines;
  demo::TenantRecord record;
};

/// Lifetime: children end with it. `workload` and `poller` must outlive it. Threads: one.
class Supervisor {
 public:
  Supervisor(const Settings& settings, const Workload& workload, const demo::Poller& poller,
             std::filesystem::path directory);

  /// Waits for a word of anybody, reads it, takes in who has ended, starts who is missing, and
  /// counts bytes. Tenants are started only while `tenants` says so.
  /// Errors: TimedOut after Ctrl-C; FileNotFound without programs; MalformedMessage.
  Result<void> poll(bool tenants);

  /// Let all that stand go on.
  void resume_all();
  /// To every process that is_stopped.
  void count_action();

  /// Asked of the broker; nothing while it does not answer, which may be so the next moment.
  client::BrokerView* view();

  ProcessSlot& broker() { return broker_; }
  std::vector<WorkerSlot>& workers() { return workers_; }
  std::vector<TenantSlot>& tenants() { return tenants_; }
  bool all_workers_ready() const;
  std::uint64_t tokens_received() const { return tokens_received_; }
  History& history() { return history_; }
  /// What broker and workers wrote to their files joins the rest.
  Result<void> collect_event_logs();

 private:
  Result<void> read(TenantSlot& slot);
  Result<void> collect_exits();
  Result<void> record_tenant(TenantSlot& slot);
  Result<void> start_missing(bool tenants);
  Result<void> start_broker();
  Result<void> start_worker(WorkerSlot& slot);
  Result<void> start_tenant(TenantSlot& slot);
  Result<void> connect_broker();
  void refresh_workers();
  void sample_status();
  std::string program(const std::string& name) const { return settings_.bin_dir + "/" + name; }
  std::string log(const std::string& name) const { return directory_ / (name + ".log"); }
  std::string socket() const { return directory_ / "broker.sock"; }

  const Settings& settings_;
  const Workload& workload_;
  const demo::Poller& poller_;
  std::filesystem::path directory_;
  SystemClock clock_;
  std::unique_ptr<FdStore> store_;  ///< Nothing without one.
  std::vector<std::size_t>
      broker_instances_;  ///< Of each broker process: its index in the history.
  ProcessSlot broker_;
  std::optional<client::BrokerView> view_;
  std::vector<WorkerSlot> workers_;
  std::vector<TenantSlot> tenants_;
  std::uint64_t tokens_received_ = 0;
  History history_;
};

}  // namespace leasehold::soak
