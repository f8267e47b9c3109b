/// Starts brokers, workers and tenants whose sockets and logs are in one directory.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/machine/child_process.hpp"

namespace leasehold {

class FdStore;

struct StartOptions {
  /// Added to the arguments that name sockets, model and tenant.
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  ///< NAME=value, added to this process's environment.
  std::string log_name;  ///< Empty: "broker", "worker-NAME", "tenant-NAME" or the program's name.
  std::optional<uid_t> uid;  ///< As in ChildConfig, and so is `nice`.
  std::optional<int> nice;
};

/// The caller owns the processes. Errors of every start: those of Child::start. Threads: one.
class ProgramStarter {
 public:
  /// `store` starts every broker and keeps its descriptors; null: no store. The store must outlive
  /// this object.
  ProgramStarter(std::string bin_dir, std::filesystem::path directory, FdStore* store = nullptr)
      : bin_dir_(std::move(bin_dir)), directory_(std::move(directory)), store_(store) {}

  const std::filesystem::path& directory() const { return directory_; }
  std::string broker_socket() const { return directory_ / "broker.sock"; }
  std::string worker_socket(const std::string& worker) const;

  /// The path of a log, which holds stderr, and stdout unless the caller reads it. A restarted
  /// program appends to its log.
  std::string log_path(const std::string& log_name) const;
  /// Returns "its log ends: " and the last lines of the log, for error messages. Reads no pipe.
  std::string end_of_log(const std::string& log_name) const;

  Result<Child> start_broker(StartOptions options) const;
  Result<Child> start_worker(const std::string& worker, const std::string& model_path,
                             StartOptions options) const;
  /// Starts a tenant that prints JSON to a pipe, which the caller reads.
  Result<Child> start_tenant(const std::string& tenant, const std::string& prompt,
                             StartOptions options) const;
  /// Starts any other program.
  Result<Child> start(const std::string& program, StartOptions options) const;
  /// The same, but the caller reads the program's stdout from a pipe.
  Result<Child> start_reading(const std::string& program, StartOptions options) const;

 private:
  ChildConfig config_of(const std::string& program, std::vector<std::string> arguments,
                        std::string default_log_name, StartOptions options) const;

  std::string bin_dir_;
  std::filesystem::path directory_;
  FdStore* store_;
};

}  // namespace leasehold
