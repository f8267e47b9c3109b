/// The benchmark's broker and worker, with separate cores.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/machine/cpu_set.hpp"
#include "tests/checks/local_system/fd_store.hpp"
#include "tests/checks/local_system/local_system.hpp"

namespace leasehold::bench {

struct SystemConfig {
  std::string bin_dir;     ///< Directory of leasehold-broker and leasehold-worker.
  std::string model_path;  ///< Empty: no worker is started.
  /// Compute threads. If they are fewer than the cores, they run alone on the last cores, and the
  /// broker, the worker's other threads and this thread share the rest. Otherwise the kernel
  /// decides. 0: the worker's default, and cores are not partitioned.
  std::uint32_t threads = 1;
  std::string capacity = "512MiB";
  std::vector<std::string> broker_options;
  std::vector<std::string> worker_options = {};
  bool journal = false;           ///< Give the broker a state directory.
  bool keep_descriptors = false;  ///< Keep the broker's descriptors across its death.
};

/// Lifetime: that of LocalSystem. Threads: one.
class System {
 public:
  /// Starts broker and worker and waits until the worker is ready.
  /// Errors: those of LocalSystem, with the directory of the logs.
  static Result<std::unique_ptr<System>> start(const SystemConfig& config);

  std::string broker_socket() const { return local_->programs().broker_socket(); }
  std::string worker_log_path() const { return local_->programs().log_path("worker-" + worker_); }
  pid_t broker_pid() const { return local_->broker().pid(); }
  pid_t worker_pid() const { return local_->worker(worker_).pid(); }

  BrokerView& broker() { return local_->view(); }
  Result<void> admit(const std::string& tenant, std::uint32_t weight = 1,
                     std::uint32_t max_concurrent = 4);
  /// Creates an API key for a tenant that was admitted.
  Result<std::string> create_key(const std::string& tenant);
  /// Admits the tenants of a TenantPool with this many clients.
  Result<void> admit_pool(std::uint32_t clients);
  Result<void> revoke(LeaseId lease) { return broker().command(wire::LeaseRevoke{.lease = lease}); }

  /// Reads the model's file into the page cache, which a worker drops once it has loaded it, so
  /// that what loads next does not wait for the disk.
  void cache_model() const;

  /// Sends SIGKILL and waits until the process is gone. The next worker finds its model cached.
  void kill_broker() { local_->kill_broker(); }
  void kill_worker() {
    cache_model();
    local_->kill_worker(worker_);
  }
  Result<void> start_broker();
  Result<void> start_worker();
  /// Starts another worker like the first one, with this name, and waits until it is ready.
  Result<void> add_worker(const std::string& worker) { return start(worker); }
  /// Starts another worker like the first one, waits until it is ready, and lets it replace the
  /// first, which is not killed. From then on worker_pid() and the other functions of this class
  /// refer to the new worker.
  Result<void> replace_worker();
  /// Sends SIGKILL to the worker that was replaced last.
  void kill_replaced_worker() { local_->kill_worker(replaced_); }

 private:
  explicit System(SystemConfig config) : config_(std::move(config)) {}
  void partition_cores();
  Result<void> start_processes();
  Result<void> start(const std::string& worker);

  SystemConfig config_;
  std::string compute_cpus_;  ///< Empty: any.
  std::optional<ScopedCpuAffinity> other_cpus_;
  std::optional<FdStore> store_;
  std::string worker_ = "bench", replaced_;
  std::uint32_t replacements_ = 0;
  std::unique_ptr<LocalSystem> local_;
};

}  // namespace leasehold::bench
