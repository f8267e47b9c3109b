/// A descriptor store as a service manager has it: starts a program, keeps the descriptors that the
/// program stores, and passes them to the next process of the program.
///
/// Implements the manager's side of sd_notify(3) and sd_listen_fds(3). Threads: one. A second,
/// internal thread receives the descriptors, so that a program that stores many does not block.
#pragma once

#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/machine/child_process.hpp"
#include "tests/support/temporary_directory.hpp"

namespace leasehold {

class FdStore {
 public:
  FdStore();
  ~FdStore();
  FdStore(const FdStore&) = delete;
  FdStore& operator=(const FdStore&) = delete;

  /// Starts the program with every stored descriptor. If the previous process has not exited, its
  /// last descriptors may be missing.
  Result<Child> start(ChildConfig config);

  /// Names of the stored descriptors in order of arrival; a name may repeat.
  std::vector<std::string> names();
  /// These two change the store without the program, for tests.
  void drop_all();
  void put(const std::string& name, UniqueFd fd);
  /// True once the program has sent READY=1 since the last start.
  bool is_ready();

 private:
  struct Entry {
    std::string name;
    UniqueFd fd;
  };
  void collect();
  void take(const std::string& message, std::vector<UniqueFd> fds);
  void keep(const std::string& name, UniqueFd fd);

  TemporaryDirectory directory_ = TemporaryDirectory::create("notify").value();
  std::string path_ = directory_.path() / "notify";
  UniqueFd socket_;
  std::mutex mutex_;
  std::vector<Entry> entries_;
  bool ready_ = false;
  std::jthread collector_;
};

}  // namespace leasehold
