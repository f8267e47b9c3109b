/// A broker and its workers as real processes in a temporary directory of their own.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "common/clock.hpp"
#include "tests/checks/local_system/broker_view.hpp"
#include "tests/checks/local_system/program_starter.hpp"
#include "tests/support/temporary_directory.hpp"

namespace leasehold {

struct LocalSystemConfig {
  std::string name;     ///< The directory is called leasehold-NAME-XXXXXX.
  std::string bin_dir;  ///< Where the programs are.
  /// Keeps the broker's descriptors when the broker dies; must outlive the system.
  FdStore* store = nullptr;
  /// Called between two polls while a program starts; an error ends the wait. Empty: sleep.
  std::function<Result<void>(Duration)> pause;
};

/// Lifetime: the destructor ends the processes, workers before the broker, and then removes the
/// directory. Threads: one.
class LocalSystem {
 public:
  /// Starts no process. Errors: SystemError.
  static Result<std::unique_ptr<LocalSystem>> create(LocalSystemConfig config);
  ~LocalSystem();
  LocalSystem(const LocalSystem&) = delete;
  LocalSystem& operator=(const LocalSystem&) = delete;

  const ProgramStarter& programs() const { return programs_; }
  /// Keeps the directory and its logs on disk.
  void keep_directory() { directory_.keep(); }

  /// Kills a running broker, starts a new one and waits until it answers.
  /// Errors: FileNotFound (no such program), TimedOut; for a broker that exited, the error of its
  /// exit code, else ConnectionLost, with the end of its log.
  Result<void> start_broker(StartOptions options, Duration timeout);
  /// Kills a running worker of this name and starts a new one. Does not wait until the new one is
  /// ready.
  Result<void> start_worker(const std::string& worker, const std::string& model_path,
                            StartOptions options);
  /// Waits until the broker lists the worker as ready. Errors: as start_broker.
  Result<void> await_worker(const std::string& worker, Duration timeout);
  Result<bool> worker_is_ready(const std::string& worker);

  /// Sends SIGKILL, and waits until the process is gone.
  void kill_broker();
  void kill_worker(const std::string& worker) { workers_.erase(worker); }

  /// The error of the broker or worker that has exited; success while all run.
  Result<void> check_alive();

  /// Runs a program to its end and returns its exit code. Errors: TimedOut.
  Result<int> run(const std::string& program, StartOptions options, Duration timeout);

  Child& broker() { return *broker_; }
  Child& worker(const std::string& worker) { return workers_.at(worker); }
  /// Precondition: `start_broker` succeeded, and `kill_broker` was not called since.
  BrokerView& view() { return *view_; }

 private:
  LocalSystem(LocalSystemConfig config, TemporaryDirectory directory);
  Result<void> pause() const;
  Result<void> check_broker();
  Result<void> check_worker(const std::string& worker);
  Result<void> check(const std::string& what, const std::string& log_name, Child& child) const;

  LocalSystemConfig config_;
  TemporaryDirectory directory_;
  ProgramStarter programs_;
  std::optional<Child> broker_;
  std::map<std::string, Child> workers_;
  std::optional<BrokerView> view_;
};

}  // namespace leasehold
