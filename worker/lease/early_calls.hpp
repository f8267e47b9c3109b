/// Answers the broker's calls during startup, until the engine serves and LeaseService answers
/// them.
///
/// `lease.settle` and `lease.unmap` concern an engine lease that was revoked while the worker
/// loads. They are answered once the lease's memory is unmapped, which also proves that its
/// launches are over. Other calls are refused.
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
  /// Records that the worker has unmapped all memory of a revoked engine lease, and will not map it
  /// again.
  void unmapped(LeaseId lease);
  /// Unmaps the parts of the engine's weights whose leases are revoked. Before the broker is
  /// notified, `unmap_elsewhere` unmaps other memory under the same lease. Runs on the engine's
  /// thread, which is loading and runs no step.
  void unmap_revoked(Engine& engine, const std::function<void(LeaseId)>& unmap_elsewhere);
  /// Passes the waiting calls to LeaseService, because the engine has their memory.
  void forward_to(LeaseService& leases);

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
