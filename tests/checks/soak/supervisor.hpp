/// Keeps a broker, workers and tenants running, and collects their history.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "common/clock.hpp"
#include "tests/checks/demo/poller.hpp"
#include "tests/checks/local_system/fd_store.hpp"
#include "tests/checks/local_system/local_system.hpp"
#include "tests/checks/soak/process_slot.hpp"
#include "tests/checks/soak/text_publisher.hpp"
#include "tests/checks/soak/tight_tenant.hpp"
#include "tests/checks/soak/workload.hpp"

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
  std::uint64_t texts = 0;   ///< That ended; the number of the one in progress.
  std::uint64_t starts = 0;  ///< Processes started.

  std::string request_id() const;  ///< Empty unless the text is resumable.
};

/// Lifetime: processes end with it; `settings`, `workload` and `poller` outlive it. Threads: one.
class Supervisor {
 public:
  Supervisor(const Settings& settings, const Workload& workload, const demo::Poller& poller,
             std::filesystem::path directory);

  /// Waits for output, reads it, records exits, restarts processes and samples the status. Starts
  /// tenants only if `tenants`.
  /// Errors: TimedOut after Ctrl-C; FileNotFound for a missing program; MalformedMessage.
  Result<void> poll(bool tenants);

  /// Resumes every stopped process, and cancels later kills.
  void resume_all();
  /// Counts one action for every stopped process.
  void count_action();

  /// Null while the broker does not answer.
  BrokerView* view();

  ProcessSlot& broker() { return broker_; }
  std::vector<WorkerSlot>& workers() { return workers_; }
  std::vector<TenantSlot>& tenants() { return tenants_; }
  const TightTenant& tight_tenant() const { return tight_tenant_; }
  const TextPublisher& publisher() const { return publisher_; }
  bool all_workers_ready() const;
  std::uint64_t tokens_received() const { return tokens_received_; }
  History& history() { return history_; }
  /// Adds the event logs of brokers and workers to the history.
  Result<void> collect_event_logs();

 private:
  Result<void> read(TenantSlot& slot);
  Result<void> collect_exits();
  void record_tenant(TenantSlot& slot);
  Result<void> start_missing(bool tenants);
  Result<void> start_broker();
  Result<void> start_worker(WorkerSlot& slot);
  Result<void> start_tenant(TenantSlot& slot);
  Result<void> connect_broker();
  void reserve_memory();
  wire::TenantAdmit policy_of(const TenantSpec& spec) const;
  std::uint64_t capacity_bytes() const;
  std::uint32_t large_lease_blocks() const;
  TenantSlot& slot_of(wire::Tier tier);
  bool may_start(const TenantSlot& slot);
  void refresh_workers();
  void poll_tight_tenant(bool starts);
  void poll_publisher(bool publishes);
  void sample_status();
  void sample_used_blocks(BrokerView& broker);
  std::string event_log(const std::string& name) const {
    return programs_.directory() / (name + ".jsonl");
  }

  const Settings& settings_;
  const Workload& workload_;
  const demo::Poller& poller_;
  SystemClock clock_;
  std::unique_ptr<FdStore> store_;  ///< Null without --store.
  ProgramStarter programs_;
  std::vector<std::size_t> broker_instances_;  ///< Index in the history, by broker process.
  ProcessSlot broker_;
  std::optional<BrokerView> view_;
  bool is_reserved_ = false;  ///< The guaranteed tenant's memory, by the broker of `view_`.
  std::vector<WorkerSlot> workers_;
  std::vector<TenantSlot> tenants_;
  TightTenant tight_tenant_;
  TextPublisher publisher_;
  std::uint64_t scavenger_process_ = 0;  ///< Beside which the guaranteed tenant last started.
  std::uint64_t samples_ = 0;
  UsedBlocks used_of_broker_;  ///< As the broker counted them last.
  std::uint64_t tokens_received_ = 0;
  History history_;
};

}  // namespace leasehold::soak
