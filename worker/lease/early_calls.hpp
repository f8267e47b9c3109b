/// Answers the broker's calls until LeaseService does, when the engine serves.
///
/// `lease.settle` and `lease.unmap` are about an engine lease that was revoked while the worker
/// loads. They wait until the lease's memory is unmapped, which also shows that its launches are
/// over. Other calls are refused.
///
/// Threads: `unmapped` on any thread, `unmap_revoked` on the engine's, the rest on the I/O thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "worker/lease/lease_service.hpp"

namespace leasehold {

class EarlyCalls {
 public:
  explicit EarlyCalls(boost::asio::io_context& io) : io_(&io) {}

  void on_call(const std::string& method, control::Payload params, control::Responder respond);
  /// The worker has unmapped all memory of a revoked engine lease, and will not map it again.
  void unmapped(LeaseId lease);
  /// Unmaps the parts of the engine's weights whose leases are revoked; before the broker learns of
  /// one, `unmap_elsewhere` unmaps what else the worker has under its lease. On the engine's
  /// thread, which loads and runs no step.
  void unmap_revoked(Engine& engine, const std::function<void(LeaseId)>& unmap_elsewhere);
  /// Passes on the calls that still wait: the engine has their memory.
  void pass_on(LeaseService& leases);

 private:
  struct Call {
    LeaseId lease;
    std::string method;
    control::Payload params;
    control::Responder respond;
  };
  void answer();

  boost::asio::io_context* io_;
  std::vector<Call> waiting_;
  std::set<LeaseId> unmapped_;
};

}  // namespace leasehold
