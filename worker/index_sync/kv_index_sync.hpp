/// Keeps an index outside the worker free of requests whose KV no longer exists: the tracker
/// decides, the sender sends.
///
/// Threads: as KvEvictionListener; construction and `stop` on one.
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

  /// With a spool at `spool_path`. Without one, for a reason that it logs, it syncs all the same.
  static std::unique_ptr<KvIndexSync> start(IndexSenderConfig config,
                                            const std::string& spool_path);

  void admitted(const RequestId& engine_request_id) override;
  void ended(const RequestId& engine_request_id) override;
  void kv_held(const RequestId& engine_request_id) override;
  void kv_gone(const RequestId& engine_request_id) override;

  /// The worker ends: every id leaves. As IndexSender::stop; logs the counters.
  void stop(std::chrono::milliseconds timeout);
  IndexCounters counters() const { return sender_.counters(); }

 private:
  template <class Change>
  void apply(const Change& change);

  std::mutex mutex_;  ///< Also orders what the sender gets.
  EvictionTracker tracker_;
  IndexSender sender_;
};

}  // namespace leasehold
