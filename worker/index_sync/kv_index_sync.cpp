#include "worker/index_sync/kv_index_sync.hpp"

#include <spdlog/spdlog.h>

#include "worker/kv/request_ids.hpp"

namespace leasehold {

Result<std::unique_ptr<KvIndexSync>> KvIndexSync::start(IndexSenderConfig config,
                                                        const std::string& spool_path) {
  Result<IdSpool> opened = IdSpool::open(spool_path);
  std::optional<IdSpool> spool;
  if (opened) {
    spool = *std::move(opened);
  } else {
    spdlog::warn("index ids stay in the index if this worker is killed reason=\"{}\"",
                 opened.error().detail);
  }
  auto sync = std::make_unique<KvIndexSync>(std::move(config), std::move(spool));
  TRY(sync->sender_.start());
  return sync;
}

template <class Change>
void KvIndexSync::apply(const Change& change) {
  const std::scoped_lock lock(mutex_);
  change(tracker_);
  for (const RequestId& id : tracker_.take_removed())
    sender_.add_ended(tenant_of(id), to_client_request_id(id));
}

void KvIndexSync::admitted(const RequestId& engine_request_id) {
  apply([&](EvictionTracker& tracker) {
    tracker.admitted(engine_request_id);
    sender_.add_live(tenant_of(engine_request_id), to_client_request_id(engine_request_id));
  });
}

void KvIndexSync::ended(const RequestId& engine_request_id) {
  apply([&](EvictionTracker& tracker) { tracker.ended(engine_request_id); });
}

void KvIndexSync::kv_held(const RequestId& engine_request_id) {
  apply([&](EvictionTracker& tracker) { tracker.kv_held(engine_request_id); });
}

void KvIndexSync::kv_gone(const RequestId& engine_request_id) {
  apply([&](EvictionTracker& tracker) { tracker.kv_gone(engine_request_id); });
}

void KvIndexSync::stop(std::chrono::milliseconds timeout) {
  apply([](EvictionTracker& tracker) { tracker.end_all(); });
  sender_.stop(timeout);
  const IndexCounters counts = sender_.counters();
  const std::scoped_lock lock(mutex_);
  spdlog::info(
      "index sync ended evict_incoming={} evict_removed={} evict_not_found={} evict_dropped={} "
      "failures={} removed_early={} untracked={}",
      counts.incoming, counts.removed, counts.not_found, counts.dropped, counts.failures,
      tracker_.removed_early(), tracker_.untracked());
}

}  // namespace leasehold
