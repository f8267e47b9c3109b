/// Decides when the id of a request leaves the external index: once, when the request has ended and
/// no block holds its text.
///
/// Clients choose ids, so two tenants may use the same id; it leaves the index with the last
/// request that uses it. A client that reuses an id begins a new request.
///
/// The number of tracked requests is bounded and shared by tenant: beyond `max_tracked` the tenant
/// with the most requests loses one. Its ended request that has been held for longest leaves the
/// index early, which can only cost a cache hit. If all its requests run, its newest request is not
/// tracked, and the id stays in the index. Both cases are counted.
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
  void kv_held(const RequestId& engine_request_id) override;
  void kv_gone(const RequestId& engine_request_id) override;

  /// Called when the worker ends and its KV with it: ends every request, held requests in the order
  /// of their ends.
  void end_all();

  /// Takes the requests whose client_request_id is to be removed, in the order of the decisions.
  std::vector<RequestId> take_removed();

  std::size_t tracked() const { return entries_.size(); }
  std::uint64_t removed_early() const { return removed_early_; }
  std::uint64_t untracked() const { return untracked_; }

 private:
  struct Entry {
    bool is_running = true;
    std::uint32_t holds = 0;  ///< `kv_held` calls without `kv_gone`; a reused id may have several.
    std::uint64_t since = 0;  ///< Key in `running` or `held` of its tenant.
  };
  using Entries = std::unordered_map<RequestId, Entry>;
  using Ordered = std::map<std::uint64_t, RequestId>;  ///< Oldest first.
  struct OfTenant {
    Ordered running;
    Ordered held;  ///< Ended requests with holds.
    std::size_t size() const { return running.size() + held.size(); }
  };

  void file(Entries::iterator entry);
  void unfile(Entries::iterator entry);
  void make_room();
  bool forget(Entries::iterator entry);
  void remove(Entries::iterator entry);

  std::size_t max_tracked_;
  Entries entries_;                           ///< By engine_request_id.
  std::map<TenantId, OfTenant> of_tenant_;    ///< No entry is empty.
  std::unordered_map<RequestId, int> users_;  ///< Tracked requests by client_request_id.
  std::vector<RequestId> removed_;
  std::uint64_t last_ = 0;
  std::uint64_t removed_early_ = 0;
  std::uint64_t untracked_ = 0;
};

}  // namespace leasehold
