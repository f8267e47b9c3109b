/// Collects the unmaps and verifications of the decisions of one turn of the loop, so that they
/// share a hop to the scrubber, and the extents of many leases are recorded as free together.
///
/// Lifetime: the arguments outlive it, and the io_context does not run after it. Threads: the
/// io_context's thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <vector>

#include "broker/decide/effect.hpp"
#include "broker/memory/host_memory.hpp"
#include "broker/memory/lent_memory.hpp"

namespace leasehold {

class MemoryReturns {
 public:
  struct Handlers {
    /// Asks the worker to unmap. Called when all earlier punches are done, so that verification
    /// finds any later write of the worker.
    std::function<void(const effect::SendUnmap&)> unmap;
    std::function<void(ExtentsVerified)> on_verified;
  };
  MemoryReturns(boost::asio::io_context& io, HostMemory& host, Handlers handlers)
      : io_(io), host_(host), handlers_(std::move(handlers)) {}

  void unmap(const effect::SendUnmap& effect);
  /// `memory` holds the extents of this pool.
  void verify(const effect::VerifyExtents& effect, LentMemory& memory);

 private:
  void unmap_all();
  void verify_all(MemoryPool pool, LentMemory& memory);

  boost::asio::io_context& io_;
  HostMemory& host_;
  Handlers handlers_;
  std::vector<effect::SendUnmap> to_unmap_;
  std::map<MemoryPool, std::vector<ExtentId>> to_verify_;
};

}  // namespace leasehold
