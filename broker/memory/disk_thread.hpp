/// Runs disk calls in order on its own thread, so that a disk that hangs does not delay the caller.
///
/// Lifetime: the destructor waits at most `stop_timeout` for the posted work. If the work takes
/// longer, the thread continues after the destructor, so work must not refer to anything that the
/// owner destroys. Threads: the owner's thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <thread>

namespace leasehold {

class DiskThread {
 public:
  using Work = std::move_only_function<void()>;

  explicit DiskThread(std::chrono::milliseconds stop_timeout = std::chrono::seconds(1));
  ~DiskThread();
  DiskThread(const DiskThread&) = delete;
  DiskThread& operator=(const DiskThread&) = delete;

  void post(Work work);

 private:
  struct Shared;
  static void run(Shared& shared);

  std::chrono::milliseconds stop_timeout_;
  std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace leasehold
