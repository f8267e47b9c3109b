/// Runs the jobs of a SpillStore on a thread of its own, so that no step waits for the disk.
///
/// Threads: `post` and `take_answers` from any. Lifetime: `on_answer` is called on the thread until
/// the destructor returns. A thread that hangs in the disk for a second longer is left behind with
/// what it uses, so that the process can end.
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
