/// Runs the jobs of a SpillStore on a thread of its own, so that no step waits for the disk.
///
/// Threads: `post` and `take_answers` from any. Lifetime: `on_answer` may be called on the thread
/// until the destructor returns. If a disk operation blocks the thread for another second, the
/// destructor detaches the thread, which keeps the objects that it uses alive, so that the process
/// can end.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "worker/kv/spill_store.hpp"

namespace leasehold {

class SpillThread final : public SpillQueue {
 public:
  SpillThread(std::shared_ptr<SpillStore> store, std::function<void()> on_answer);
  SpillThread(const SpillThread&) = delete;
  SpillThread& operator=(const SpillThread&) = delete;
  ~SpillThread() override;

  void post(SpillJob job) override;
  std::vector<SpillAnswer> take_answers() override;

 private:
  struct Shared;
  static void run(Shared& shared);

  std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace leasehold
