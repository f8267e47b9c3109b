/// Answers the broker's calls about leases and quotas: apply a quota, map a grant, confirm that the
/// launches of a revoked lease are over, unmap a fenced lease, return extents, fill a shared lease;
/// and pings. EarlyCalls answers before the engine serves.
///
/// One thread maps and prefaults, another unmaps, so that reclaiming memory does not wait for
/// grants. Neither runs inside a step or on the I/O thread, which sends the typed ends of requests.
/// The engine installs the memory between two steps. A lease's first grant is answered before that,
/// so that its holder's request can reach the engine at the end of the same step. A tenant's first
/// memory gets pages when a unit uses it.
///
/// The service keeps the descriptor of each extent, because a restarted broker can get the memory
/// of a live lease only from its worker.
///
/// Threads: `on_call` and `redeliveries` on the I/O thread; the rest from any thread. Lifetime:
/// everything in Dependencies outlives it.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <map>
#include <mutex>

#include "ipc/region/region_mapper.hpp"
#include "worker/engine/engine_loop.hpp"
#include "worker/lease/broker_link.hpp"
#include "worker/lease/growth_calls.hpp"
#include "worker/lease/prefix_fills.hpp"

namespace leasehold {

class LeaseService {
 public:
  struct Dependencies {
    boost::asio::io_context* io = nullptr;
    boost::asio::any_io_executor mapper;  ///< Runs one thread, so grants are mapped in order.
    boost::asio::any_io_executor unmapper;
    BrokerLink* broker = nullptr;
    EngineLoop* loop = nullptr;
    Engine* engine = nullptr;  ///< Used for calls that are allowed during a step.
    const TableReader* table = nullptr;
    const Clock* clock = nullptr;
    std::uint32_t blocks_per_extent = 1;
    const RegionMapper* regions = &host_mapper();       ///< Maps KV memory.
    const RegionMapper* first_regions = nullptr;        ///< See Compute::first_mapper.
    const RegionMapper* swap_regions = &host_mapper();  ///< Maps swap memory, which is host memory.
    /// Calls back, on any thread, once all launches of the scope that began earlier are over.
    /// Empty: the service answers between two steps, which is correct if each step waits for its
    /// launches.
    std::function<void(SettleScope, std::move_only_function<void()>)> when_settled = {};
    // See PrefixFills.
    boost::asio::any_io_executor parser = {};
    std::function<Result<std::vector<TokenId>>(const std::string& text)> encode = {};
    /// Called on the I/O thread for each fenced lease. May be empty.
    std::function<void(LeaseId)> on_fenced = {};
    /// Called on the engine's thread for each grant of an adapter's lease, once the engine has its
    /// extents. May be empty.
    std::function<void(const wire::LeaseGrant&)> on_adapter_granted = {};
  };
  explicit LeaseService(Dependencies dependencies)
      : deps_(std::move(dependencies)),
        fills_(
            {.io = deps_.io, .loop = deps_.loop, .parser = deps_.parser, .encode = deps_.encode}) {}

  PrefixFills& fills() { return fills_; }

  void set_blocks_per_extent(std::uint32_t blocks) { deps_.blocks_per_extent = blocks; }

  void on_call(const std::string& method, control::Payload params, control::Responder respond);

  struct Redelivery {
    wire::LeaseRedeliver message;
    std::vector<UniqueFd> fds;
  };
  /// The messages that return all granted memory to a restarted broker, with duplicated
  /// descriptors. Errors: SystemError.
  Result<std::vector<Redelivery>> redeliveries() const;

  /// Calls `then` on the I/O thread once the engine has all granted memory, possibly at once. A
  /// later call replaces a waiting `then`. Only on the I/O thread.
  void when_installed(std::move_only_function<void()> then);

  /// Sends growth requests to the broker, as GrowthCalls allows.
  void grow(const std::vector<GrowthRequest>& growth_requests);
  /// Sends the use of divided quotas to the broker. From any thread.
  void report_usage(const std::vector<wire::TenantUsage>& usage);

  /// Reports to the broker draining leases without requests.
  void report_drained(const std::vector<LeaseId>& leases);
  /// Reports all drained leases again, after a reconnect.
  void repeat_drained();

 private:
  Result<void> set_quota(const control::Json& body, control::Responder& respond);
  Result<void> grant(control::Payload params, control::Responder& respond);
  Result<void> keep_extent_fds(const wire::LeaseGrant& grant, const std::vector<UniqueFd>& fds);
  enum class Answers : bool { OnceMapped, OnceInstalled };
  bool is_first(const wire::LeaseGrant& grant) const;
  const RegionMapper& mapper_of(wire::MemoryPool pool) const;
  struct MappedGrant {
    wire::LeaseGrant grant;
    Answers answers;
  };
  /// `done`: the mappings, or the error.
  void on_mapped(MappedGrant granted, Result<std::vector<LeasedMapping>> done,
                 control::Responder responder);
  void install(Engine& engine, const wire::LeaseGrant& grant, std::vector<LeasedMapping> mapped);
  void install_adapter(Engine& engine, const wire::LeaseGrant& grant,
                       std::vector<LeasedMapping> mapped);
  Result<void> settle(const control::Json& body, control::Responder& respond);
  Result<void> unmap(const control::Json& body, control::Responder& respond);
  void unmap_fenced(LeaseId lease, control::Responder respond);
  void unmap_between_steps(LeaseId lease, control::Responder respond);
  Result<void> reclaim(const control::Json& body, control::Responder& respond);
  void answer(control::Responder respond, control::Payload reply);
  void grant_installed(LeaseId lease);
  void on_growth_reply(const GrowthRequest& asked, const Result<void>& reply);

  Dependencies deps_;
  // of all granted extents; I/O thread
  std::map<LeaseId, std::map<ExtentId, UniqueFd>> extent_fds_;
  /// The number of a lease's grants that the engine has not installed yet, and when the first of
  /// them is answered.
  struct InFlight {
    int count = 0;
    Answers answers = Answers::OnceMapped;
  };
  std::map<LeaseId, InFlight> grants_in_flight_;    // I/O thread
  std::move_only_function<void()> when_installed_;  // I/O thread
  PrefixFills fills_;
  std::mutex mutex_;
  GrowthCalls growth_calls_;  // guarded by mutex_
};

}  // namespace leasehold
