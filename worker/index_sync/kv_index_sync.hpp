/// Removes requests whose KV no longer exists from an index outside the worker: EvictionTracker
/// decides which, and IndexSender sends the removals.
///
/// Threads: like KvEvictionListener; construction and `stop` on one thread.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "worker/index_sync/eviction_tracker.hpp"
#include "worker/index_sync/index_sender.hpp"

namespace leasehold {

class KvIndexSync final : public KvEvictionListener {
 public:
  explicit KvIndexSync(IndexSenderConfig config, std::optional<IdSpool> spool = {})
      : sender_(std::move(config), std::move(spool)) {}

  /// Starts with a spool at `spool_path`. If the spool cannot be opened, logs the reason and syncs
  /// without one. Errors: SystemError when the system refuses the thread that sends.
  static Result<std::unique_ptr<KvIndexSync>> start(IndexSenderConfig config,
                                                    const std::string& spool_path);

  void admitted(const RequestId& engine_request_id) override;
  void ended(const RequestId& engine_request_id) override;
  void kv_held(const RequestId& engine_request_id) override;
  void kv_gone(const RequestId& engine_request_id) override;

  /// Called when the worker ends: removes every id, calls IndexSender::stop, and logs the counters.
  void stop(std::chrono::milliseconds timeout);
  IndexCounters counters() const { return sender_.counters(); }

 private:
  template <class Change>
  void apply(const Change& change);

  std::mutex mutex_;  ///< Also orders the changes passed to the sender.
  EvictionTracker tracker_;
  IndexSender sender_;
};

}  // namespace leasehold
