/// Runs leasehold-broker as a process on its own socket, with helpers to call it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/child_process.hpp"
#include "ipc/control/client.hpp"
#include "ipc/control/messages.hpp"
#include "tests/support/test_paths.hpp"

namespace leasehold {

class BrokerProcess {
 public:
  /// Starts the broker and waits until it serves. The default fence timeout is one hour, so that no
  /// worker is killed on a slow machine.
  explicit BrokerProcess(std::vector<std::string> more_arguments = {});
  ~BrokerProcess();
  BrokerProcess(const BrokerProcess&) = delete;
  BrokerProcess& operator=(const BrokerProcess&) = delete;

  const std::string& socket() const { return socket_; }
  pid_t pid() const { return child_->pid(); }
  void signal(int signal_number);
  /// Kills the broker, runs `between`, starts a broker with the same arguments and waits until it
  /// serves.
  void kill_and_restart(const std::function<void()>& between = [] {});
  /// Waits until the broker ends; returns the exit code, or 128 + signal.
  int wait();

  control::Client connect() const;
  void admit(control::Client& client, const std::string& tenant) const;
  /// `blocks` 0 requests one extent.
  Result<wire::LeaseAcquired> acquire(control::Client& client, const std::string& tenant,
                                      std::uint32_t blocks = 0) const;
  Result<control::Payload> revoke(control::Client& client, LeaseId lease) const;
  wire::LeaseView view(control::Client& client, LeaseId lease) const;
  wire::StatusView status(control::Client& client) const;

 private:
  void start();

  std::vector<std::string> arguments_;
  std::string folder_;
  std::string socket_;
  std::optional<Child> child_;
};

/// Runs the program with these arguments to its end and returns the exit code.
int run_broker_once(const std::vector<std::string>& arguments);

RequestId next_request_id();

}  // namespace leasehold
