/// What the broker asks of a worker: map a grant, say when the launches of a revoked lease are
/// over, unmap a fenced one, give extents back.
///
/// Mapping and prefaulting happen on a mapper's thread, unmapping on another's, so that memory
/// going back does not wait for memory that comes: never inside a step, and not on the I/O thread
/// either, where the typed end of somebody else's request may be waiting to be sent. The engine
/// learns of the result between two steps.
///
/// The descriptor of each extent is kept beside its mapping: only its worker can bring the memory
/// of a live lease back to a broker that was started again.
///
/// Threads: `on_call` on the I/O thread; `grow` from any. Lifetime: everything in Dependencies
/// outlives it.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <map>
#include <mutex>

#include "ipc/region/region_mapper.hpp"
#include "worker/engine/engine_loop.hpp"
#include "worker/lease/broker_link.hpp"

namespace leasehold {

class LeaseService {
 public:
  struct Dependencies {
    boost::asio::io_context* io = nullptr;
    boost::asio::any_io_executor mapper;  ///< Of one thread: what came first is mapped first.
    boost::asio::any_io_executor unmapper;
    EngineLoop* loop = nullptr;
    Engine* engine = nullptr;  ///< For what may be done beside a step.
    const TableReader* table = nullptr;
    const Clock* clock = nullptr;
    std::uint32_t blocks_per_extent = 1;
    const RegionMapper* regions = &host_mapper();  ///< For the memory this broker lends.
    /// Calls back, from any thread, once no launch that began before can touch memory of the lease.
    /// Empty: between two steps, which is soon enough where a step waits for its launches.
    std::function<void(LeaseId, std::move_only_function<void()>)> quiesce = {};
  };
  explicit LeaseService(Dependencies dependencies) : deps_(std::move(dependencies)) {}

  void set_broker(BrokerLink* broker) { broker_ = broker; }
  void set_blocks_per_extent(std::uint32_t blocks) { deps_.blocks_per_extent = blocks; }

  void on_call(const std::string& method, control::Payload params, control::Responder respond);

  /// All memory this worker has been granted and not given back, for a broker that was started
  /// again: a message and its descriptors, the worker's own ones duplicated. I/O thread.
  struct Redelivery {
    wire::LeaseRedeliver message;
    std::vector<UniqueFd> fds;
  };
  Result<std::vector<Redelivery>> redeliveries() const;

  /// Asks the broker for what the scheduler wishes, at most one call per lease at a time, and not
  /// again for a moment after a refusal.
  void grow(const std::vector<GrowthRequest>& wishes);

 private:
  /// A grant whose memory is mapped, or why it is not.
  struct MappedGrant {
    wire::LeaseGrant grant;
    control::Responder respond;
    Result<std::vector<LeasedMapping>> mapped;
  };
  Result<void> grant(control::Payload params, control::Responder& respond);
  Result<void> keep_extent_fds(const wire::LeaseGrant& grant, const std::vector<UniqueFd>& fds);
  void on_mapped(MappedGrant granted);
  Result<void> quiesce(const control::Json& body, control::Responder& respond);
  Result<void> unmap(const control::Json& body, control::Responder& respond);
  void unmap_fenced(LeaseId lease, control::Responder respond);
  void unmap_between_steps(LeaseId lease, control::Responder respond);
  Result<void> reclaim(const control::Json& body, control::Responder& respond);
  void answer(control::Responder respond, control::Payload reply);
  void grant_installed(LeaseId lease);
  void clear_growth_request(LeaseId lease);
  bool may_request_growth(LeaseId lease);
  void on_growth_reply(LeaseId lease, const Result<control::Payload>& reply);

  Dependencies deps_;
  BrokerLink* broker_ = nullptr;
  std::map<LeaseId, std::map<ExtentId, UniqueFd>> extent_fds_;  // what was granted; I/O thread
  std::map<LeaseId, int> grants_in_flight_;  // not with the engine yet; I/O thread
  std::mutex mutex_;
  std::map<LeaseId, TimePoint>
      next_growth_request_;  // leases with a call under way, or lately refused
};

}  // namespace leasehold
