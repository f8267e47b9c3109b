/// Runs leasehold-broker as a process on its own socket, with helpers to call it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ipc/control/messages.hpp"
#include "ipc/control/transport/client.hpp"
#include "tests/checks/local_system/program_starter.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/test_paths.hpp"

namespace leasehold {

class BrokerProcess {
 public:
  /// Starts the broker and waits until it serves. The default capacity is 64 MiB, and the default
  /// fence timeout one hour, so that no worker is killed on a slow machine. `store` keeps the
  /// broker's descriptors; null: none does.
  explicit BrokerProcess(std::vector<std::string> more_arguments = {}, FdStore* store = nullptr);

  const std::string& socket() const { return socket_; }
  pid_t pid() const { return child_->pid(); }
  void signal(int signal_number) { child_->signal(signal_number).value(); }
  /// Kills the broker, runs `between`, starts a broker with the same arguments and waits until it
  /// serves.
  void kill_and_restart(const std::function<void()>& between = [] {});
  /// Waits until the broker ends; returns the exit code, or 128 + signal.
  int wait() { return testing::exit_status_of(*child_); }

  control::Client connect() const { return control::Client::connect(socket_).value(); }
  void admit(control::Client& client, const std::string& tenant) const;
  /// `blocks` 0 requests one extent.
  Result<wire::LeaseAcquired> acquire(control::Client& client, const std::string& tenant,
                                      std::uint32_t blocks = 0) const;
  Result<control::Payload> revoke(control::Client& client, LeaseId lease) const;
  wire::LeaseView view(control::Client& client, LeaseId lease) const;
  wire::StatusView status(control::Client& client) const;

 private:
  void start();

  TemporaryDirectory folder_ = TemporaryDirectory::create("broker").value();
  ProgramStarter programs_;
  std::vector<std::string> arguments_;
  std::string socket_;
  std::optional<Child> child_;
};

/// Runs the program with these arguments to its end and returns the exit code.
int run_broker_once(std::vector<std::string> arguments);

RequestId next_request_id();

}  // namespace leasehold
