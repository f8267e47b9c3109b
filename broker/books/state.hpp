/// The whole state of the broker, without sockets, descriptors or clocks. Threads: one.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "broker/books/adapters/adapter_registry.hpp"
#include "broker/books/api_keys.hpp"
#include "broker/books/cell.hpp"
#include "broker/books/extents.hpp"
#include "broker/books/latency_histogram.hpp"
#include "broker/books/lease_book.hpp"
#include "broker/books/rebind_places.hpp"
#include "broker/books/request_book.hpp"
#include "broker/books/step_samples.hpp"
#include "broker/books/tenants.hpp"
#include "broker/books/wall_clock.hpp"
#include "broker/books/weights.hpp"
#include "broker/books/workers.hpp"
#include "ipc/segment/segment_layout.hpp"

namespace leasehold {

struct BrokerTimeouts {
  Duration fence = std::chrono::seconds(2);  ///< For the proof of a revoked lease.
  /// Time that the requests of a scavenger get to finish when its memory is reclaimed.
  Duration reclaim_grace = std::chrono::seconds(1);
  /// How long the memory of a tenant whose worker died is retained. Zero: it is scrubbed at once.
  Duration adopt_grace{};
  Duration worker{};  ///< For unanswered pings and calls. Zero: none.
};

struct BrokerConfig {
  std::uint32_t slot_count = 4096;
  /// Number of users that may run workers. Weights, engine leases and workers are divided equally
  /// among these users.
  std::uint32_t worker_users = 1;
  std::uint64_t capacity_bytes = 256ull << 20;
  std::uint64_t swap_capacity_bytes = 0;
  std::uint32_t max_extents = kDefaultMaxExtents;
  std::uint64_t weights_capacity_bytes = 1ull << 30;
  /// Per worker; a lease counts until its memory has returned.
  std::uint32_t max_engine_leases = 1024;
  /// Blocks of published texts per worker, counted in whole extents.
  std::uint32_t max_shared_blocks = 1024;
  std::uint64_t max_shared_adapter_bytes = 1ull << 30;  ///< Memory of shared adapters per worker.
  /// Each region costs at least one descriptor and one page.
  std::uint32_t max_weights_regions = 4096;
  BrokerTimeouts timeouts;
  TokenKey token_key{};
  bool lends_spill = false;    ///< Workers get spill files.
  std::string device = "cpu";  ///< Device whose memory is lent: "cpu", "cuda:0" …
  std::string device_uuid;     ///< Empty for host memory.

  /// True if the KV memory is device memory. Kernels on a device outlast the worker's announcement,
  /// and only the worker's exit proves that it unmapped the memory.
  bool lends_device() const { return device != "cpu"; }
  bool is_on_device(MemoryPool pool) const { return lends_device() && pool == MemoryPool::Kv; }

  std::uint32_t workers_per_user() const { return equal_share(kMaxWorkers); }
  /// Engine leases use at most half of the slots, so that the other half remains for tenants.
  std::uint32_t engine_leases_per_user() const { return equal_share(slot_count / 2); }

 private:
  std::uint32_t equal_share(std::uint32_t total) const {
    return std::max(1u, total / worker_users);
  }
};

/// The clocks of a revocation; see wire::RevokeClocks.
enum class RevokeClock : std::uint8_t { Refuse, Error, Quiet, Reuse };
inline constexpr std::size_t kRevokeClockCount = 4;

/// An acquire that replaces a lease whose memory is retained, and waits for a worker that can adopt
/// it.
struct WaitingAcquire {
  Caller caller;
  wire::LeaseAcquire acquire;
  TimePoint until;
};

struct WaitingAcquires {
  std::map<LeaseId, WaitingAcquire> by_lease;  ///< Keyed by the lease whose memory is retained.
  TimePoint first_end{};  ///< When the first wait ends; zero if no acquire waits.
};

/// A published text whose worker is gone. It is kept until a worker of the same name and model is
/// ready.
struct LostText {
  std::string worker;  ///< Name of the worker that served the text.
  std::string model;
  std::uint32_t uid = 0;  ///< The publisher.
  std::string name;
  std::string text;
  std::string adapter;                ///< Computes the text; empty: the base model.
  std::uint32_t adapter_version = 0;  ///< 0 for the base model.
};

/// What `status` shows of the time since the broker started. No decision depends on it.
struct StatusCounts {
  std::uint64_t leases_fenced = 0;
  std::uint64_t tampered = 0;  ///< Table entries that other processes changed.
  std::uint32_t device_losses = 0;
  /// Indexed by RevokeClock. Normal ends of leases are not counted.
  std::array<LatencyHistory, kRevokeClockCount> clocks;
  /// Indexed by RebindMode. Rebinds without a known latency are not counted.
  std::array<LatencyHistory, wire::kRebindModeCount> rebinds;
};

struct State {
  explicit State(const BrokerConfig& configuration)
      : config(configuration),
        leases(configuration.slot_count),
        extents({.kv_bytes = configuration.capacity_bytes,
                 .swap_bytes = configuration.swap_capacity_bytes},
                configuration.max_extents),
        weights({.capacity_bytes = configuration.weights_capacity_bytes,
                 .max_regions = configuration.max_weights_regions,
                 .worker_users = configuration.worker_users}),
        places(configuration.lends_device()) {}

  BrokerConfig config;
  Tenants tenants;
  ApiKeys api_keys;
  AdapterRegistry adapters;
  Cell cell;
  WallClock wall;  ///< Not journaled: the server reports the offset at each start.
  Workers workers;
  LeaseBook leases;
  ExtentBook extents;
  WeightsStore weights;
  RequestBook requests;
  RebindPlaces places;  ///< Not journaled: callers that wait ask again.
  /// Leases whose memory is retained, ordered by the time at which that ends.
  std::set<std::pair<TimePoint, LeaseId>> retained;
  WaitingAcquires waiting;
  TimePoint day_quotas_end{};  ///< End of the day for which quotas were sent; zero if none.
  StepSamples steps;
  journal::HighWaterMarks reserved;  ///< Ids up to these are reserved in the journal.
  std::vector<LostText> lost_texts;  ///< At most kMaxLostTexts, oldest first. Not journaled.
  StatusCounts counts;
  std::uint64_t decisions = 0;
  bool stopping = false;
  bool device_lost = false;  ///< No device agent runs: nothing can be allocated.
};

}  // namespace leasehold
