/// The spill file that the broker lends this worker, with the thread that writes and reads it.
///
/// Lifetime: `on_answer` is called until the destructor returns; outlives the engine's last step.
/// Threads: `take` on the thread that starts the worker.
#pragma once

#include <functional>
#include <memory>

#include "worker/engine/engine.hpp"
#include "worker/kv/spill_thread.hpp"
#include "worker/lease/broker_link.hpp"

namespace leasehold {

class LentSpill {
 public:
  /// Asks the broker and lends the file to the engine. Null when the broker lends none, or when the
  /// file cannot be used, which is logged: a worker without one serves all the same. A broker of a
  /// card lends none, since staging would have to be pinned.
  static std::unique_ptr<LentSpill> take(BrokerLink& broker, Engine& engine,
                                         std::function<void()> on_answer);

 private:
  static Result<std::unique_ptr<LentSpill>> open(BrokerLink& broker, std::uint64_t block_size_bytes,
                                                 std::function<void()> on_answer);
  LentSpill(const std::shared_ptr<SpillStore>& store, std::function<void()> on_answer)
      : store_(store), thread_(store, std::move(on_answer)) {}

  std::shared_ptr<SpillStore> store_;
  SpillThread thread_;
};

}  // namespace leasehold
