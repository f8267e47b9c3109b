/// The engine's state for the metrics. The engine's thread copies it about once a second, and
/// neither thread waits for the other.
///
/// Threads: `add_served` and `publish` on the engine's thread, `read` on the thread that answers
/// scrapes.
#pragma once

#include <atomic>

#include "common/metrics/latest.hpp"
#include "ipc/control/messages/tenant_counts.hpp"
#include "worker/schedule/scheduler.hpp"

namespace leasehold {

/// What a worker has of adapters now, and has done since its start.
struct AdapterCounts {
  std::uint64_t loaded = 0;
  std::uint64_t loading = 0;
  std::uint64_t loaded_bytes = 0;  ///< Of the matrices of loaded adapters.
  std::uint64_t loads = 0;         ///< Loads that succeeded.
  std::uint64_t evictions = 0;     ///< For any reason.
};

struct EngineSnapshot {
  std::uint64_t running = 0;
  std::uint64_t waiting = 0;
  // KV blocks of all leases.
  std::uint64_t held_blocks = 0;    ///< Held by running requests and their records.
  std::uint64_t cached_blocks = 0;  ///< Held by the prefix cache alone.
  std::uint64_t free_blocks = 0;
  std::uint64_t swapped_blocks = 0;
  PrefixCounters prefixes;
  ProposalCounters proposals;
  std::optional<bool> is_drafting;  ///< Nothing without a draft model.
  bool is_asleep = false;
  std::optional<AdapterCounts> adapters;  ///< Nothing without --adapters.
  std::vector<wire::TenantServed> tenants;
};

class EngineMetrics {
 public:
  explicit EngineMetrics(const Clock& clock) : clock_(&clock) {}

  void add_served(const std::vector<wire::TenantServed>& served);
  void publish(const Scheduler& scheduler, std::optional<bool> is_drafting = {},
               bool is_asleep = false, std::optional<AdapterCounts> adapters = {});
  /// Stays valid until the next call.
  const EngineSnapshot& read() { return latest_.read(); }
  /// The newest numbers of requests, which may be of two moments. Any thread.
  std::uint64_t running() const { return running_; }
  std::uint64_t waiting() const { return waiting_; }

 private:
  const Clock* clock_;
  TenantCounts tenants_;
  metrics::Latest<EngineSnapshot> latest_;
  std::atomic<std::uint64_t> running_ = 0;
  std::atomic<std::uint64_t> waiting_ = 0;
};

}  // namespace leasehold
