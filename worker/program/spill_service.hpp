/// The spill file that the broker lends to this worker, and the thread that writes and reads it.
///
/// Lifetime: outlives the engine's last step. `on_answer` may be called until the destructor
/// returns. Threads: `take` on the thread that starts the worker.
#pragma once

#include <functional>
#include <memory>

#include "worker/engine/engine.hpp"
#include "worker/kv/spill_thread.hpp"
#include "worker/lease/broker_link.hpp"

namespace leasehold {

class SpillService {
 public:
  /// Requests a file from the broker and passes it to the engine. Returns null when the broker
  /// lends none, or when the file cannot be used, which is logged: the worker then serves without a
  /// spill file. A broker that lends GPU memory lends no spill file, because staging would have to
  /// be pinned.
  static std::unique_ptr<SpillService> take(BrokerLink& broker, Engine& engine,
                                            std::function<void()> on_answer);

 private:
  static Result<std::unique_ptr<SpillService>> open(BrokerLink& broker,
                                                    std::uint64_t block_size_bytes,
                                                    std::function<void()> on_answer);
  SpillService(const std::shared_ptr<SpillStore>& store, std::function<void()> on_answer)
      : store_(store), thread_(store, std::move(on_answer)) {}

  std::shared_ptr<SpillStore> store_;
  SpillThread thread_;
};

}  // namespace leasehold
