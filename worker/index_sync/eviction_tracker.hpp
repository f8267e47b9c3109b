/// Decides when the id of a request leaves the outside index: once, when the request has ended and
/// none of its blocks is cached.
///
/// Clients choose ids, so two tenants may use the same one; the id leaves with the last of them.
/// A client that uses an id again begins a new request with it.
///
/// Bounded: when `max_tracked` requests are tracked, the ended request that is held the longest
/// leaves early, because an index without it only misses a hit. When all of them run, a new
/// request is not tracked: its id stays in the index, and is counted.
///
/// Pure. Threads: one.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "worker/kv/eviction_listener.hpp"

namespace leasehold {

class EvictionTracker final : public KvEvictionListener {
 public:
  static constexpr std::size_t kMaxTracked = 32'768;

  explicit EvictionTracker(std::size_t max_tracked = kMaxTracked) : max_tracked_(max_tracked) {}

  void admitted(const RequestId& engine_request_id) override;
  void ended(const RequestId& engine_request_id) override;
  void blocks_cached(const RequestId& engine_request_id) override;
  void last_cached_block_evicted(const RequestId& engine_request_id) override;
  void tenant_revoked(const TenantId& tenant) override;
  void cache_reset() override;

  /// Takes the client_request_ids to remove, in the order of their decisions.
  std::vector<RequestId> take_removed();

  std::size_t tracked() const { return entries_.size(); }
  std::uint64_t removed_early() const { return removed_early_; }
  std::uint64_t untracked() const { return untracked_; }

 private:
  struct Entry {
    bool is_running = true;
    bool is_cached = false;
    std::uint64_t held_since = 0;  ///< Key in `held_`, when ended and cached.
  };
  using Entries = std::unordered_map<RequestId, Entry>;

  void make_room();
  void remove(Entries::iterator entry);
  void uncache(Entries::iterator entry);
  template <class Holds>
  void uncache_if(const Holds& holds);

  std::size_t max_tracked_;
  Entries entries_;                           ///< By engine_request_id.
  std::map<std::uint64_t, RequestId> held_;   ///< Ended and cached, the oldest first.
  std::unordered_map<RequestId, int> users_;  ///< Tracked requests by client_request_id.
  std::vector<RequestId> removed_;
  std::uint64_t last_held_ = 0;
  std::uint64_t removed_early_ = 0;
  std::uint64_t untracked_ = 0;
};

}  // namespace leasehold
