/// A broker and a worker of the benchmark's own, as real processes on sockets in a fresh directory.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/child_process.hpp"
#include "common/cpu_set.hpp"
#include "ipc/control/client.hpp"
#include "ipc/control/events.hpp"
#include "ipc/control/messages.hpp"
#include "tools/local_system/fd_store.hpp"

namespace leasehold::bench {

struct SystemConfig {
  std::string bin_dir;     ///< Where leasehold-broker and leasehold-worker are.
  std::string model_path;  ///< Empty: no worker of our own is started.
  /// Fewer than cores: they get the last cores to themselves, and broker, worker and this thread
  /// with all it starts share the others. As many: the kernel's choice.
  std::uint32_t threads = 1;
  std::string capacity = "512MiB";
  std::vector<std::string> broker_options;
  bool journal = false;           ///< Give the broker a state directory.
  bool keep_descriptors = false;  ///< … and a service manager that keeps them over its death.
};

/// Lifetime: children end with it, and the directory goes. Threads: one.
class System {
 public:
  /// Starts both and waits until the broker calls the worker ready.
  /// Errors: FileNotFound, TimedOut, ConnectionLost with the place of the logs.
  static Result<std::unique_ptr<System>> start(const SystemConfig& config);
  ~System();
  System(const System&) = delete;
  System& operator=(const System&) = delete;

  std::string broker_socket() const { return directory_ / "broker.sock"; }
  pid_t broker_pid() const { return broker_->pid(); }
  pid_t worker_pid() const { return worker_->pid(); }

  /// One call to the broker, as an operator. Errors: the broker's, ConnectionLost, TimedOut.
  Result<wire::Json> ask(const std::string& method, wire::Json params = wire::Json::object());
  Result<void> admit(const std::string& tenant, std::uint32_t max_blocks = 1u << 20);
  Result<void> revoke(LeaseId lease);
  Result<wire::StatusView> status();
  Result<std::vector<wire::LeaseView>> leases();
  /// Events after sequence number `after`, which moves along.
  Result<std::vector<events::StampedEvent>> events_since(std::uint64_t& after);
  /// Errors: NoModelLoaded when no worker of ours is listed.
  Result<wire::WorkerView> worker_view();

  /// SIGKILL, and waits until the process is gone.
  Result<void> kill_broker();
  Result<void> kill_worker();
  Result<void> start_broker();
  Result<void> start_worker();

 private:
  System(SystemConfig config, std::filesystem::path directory)
      : config_(std::move(config)), directory_(std::move(directory)) {}
  void partition_cores();
  Result<void> connect();
  Result<void> await_worker();

  SystemConfig config_;
  std::filesystem::path directory_;
  std::string compute_cpus_;  ///< Empty: anywhere.
  std::optional<ScopedCpuAffinity> other_cpus_;
  std::optional<FdStore> store_;
  std::optional<Child> broker_;
  std::optional<Child> worker_;  ///< Ends before the broker.
  std::optional<control::Client> client_;
  bool keep_logs_ = false;
};

}  // namespace leasehold::bench
