/// A service manager as far as descriptors go: starts a program, keeps what it asks to have kept,
/// and starts it again with that.
///
/// Speaks the manager's side of sd_notify(3) and sd_listen_fds(3), so a program cannot tell it from
/// the real one. Threads: `start`, `names` and the like from one; a thread of its own collects, as
/// a program that stores much must not wait for the test.
#pragma once

#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/child_process.hpp"

namespace leasehold {

class FdStore {
 public:
  FdStore();
  ~FdStore();
  FdStore(const FdStore&) = delete;
  FdStore& operator=(const FdStore&) = delete;

  /// Starts the program with this store and everything in it. The one before has exited, or what it
  /// sent last may be missing.
  Result<Child> start(ChildConfig config);

  /// Names of what is kept, in the order it came; one may occur more than once.
  std::vector<std::string> names();
  /// A duplicate of the first one under this name; nothing when there is none.
  UniqueFd copy(const std::string& name);
  /// As if the program had never asked, or asked for this.
  void drop(const std::string& name);
  void drop_all();
  void put(const std::string& name, UniqueFd fd);
  /// Whether anybody said READY=1 since the last start.
  bool is_ready();

 private:
  struct Entry {
    std::string name;
    UniqueFd fd;
  };
  void collect();
  void take(const std::string& message, std::vector<UniqueFd> fds);
  void keep(const std::string& name, UniqueFd fd);

  std::string path_;
  UniqueFd socket_;
  std::mutex mutex_;
  std::vector<Entry> entries_;
  bool ready_ = false;
  std::jthread collector_;
};

}  // namespace leasehold
