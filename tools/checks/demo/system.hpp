/// A broker and a worker of the demo's own, on sockets in a fresh directory only this user can
/// open.
#pragma once

#include <filesystem>
#include <memory>

#include "common/child_process.hpp"
#include "tools/checks/demo/poller.hpp"
#include "tools/checks/demo/settings.hpp"
#include "tools/client/broker_view.hpp"

namespace leasehold::demo {

/// Lifetime: children end with it. The directory goes too, unless `keep_logs` was called.
class System {
 public:
  /// Starts both and waits until the broker calls the worker ready.
  /// Errors: FileNotFound, TimedOut, ConnectionLost (with the end of the log) when one died.
  static Result<std::unique_ptr<System>> start(const Settings& settings, const Poller& poller);
  ~System();
  System(const System&) = delete;
  System& operator=(const System&) = delete;

  client::BrokerView& broker() { return *broker_view_; }
  const std::filesystem::path& directory() const { return directory_; }
  std::string broker_socket() const { return directory_ / "broker.sock"; }
  std::string program(const std::string& name) const { return settings_.bin_dir + "/" + name; }
  const Settings& settings() const { return settings_; }
  const Poller& poller() const { return poller_; }
  void keep_logs() { keep_logs_ = true; }

  /// Runs a program to its end. Errors: TimedOut; SystemError when it did not exit with 0, with
  /// the end of its log.
  Result<void> run_to_end(const std::string& name, std::vector<std::string> arguments);

  /// ConnectionLost with the end of its log when broker or worker has ended.
  Result<void> check_alive();

 private:
  System(Settings settings, const Poller& poller, std::filesystem::path directory)
      : settings_(std::move(settings)), poller_(poller), directory_(std::move(directory)) {}
  Result<void> start_broker();
  Result<void> start_worker();
  std::string end_of_log(const std::string& name) const;
  std::unexpected<Error> ended(const std::string& name, Child& child) const;

  Settings settings_;
  const Poller& poller_;
  std::filesystem::path directory_;
  std::optional<Child> broker_;
  std::optional<Child> worker_;  ///< Ends before the broker.
  std::optional<client::BrokerView> broker_view_;
  bool keep_logs_ = false;
};

}  // namespace leasehold::demo
