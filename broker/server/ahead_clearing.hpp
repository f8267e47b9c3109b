/// Starts the clearing of memory ahead of grants, as extents_to_clear decides. It starts a short
/// time after extents were taken or freed, so that the clearing does not compete with a grant for a
/// core.
///
/// Threads: the io_context's thread. Lifetime: the arguments outlive this object.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>

#include "broker/books/state.hpp"
#include "broker/memory/host_memory.hpp"

namespace leasehold {

class AheadClearing {
 public:
  AheadClearing(boost::asio::io_context& io, const State& state, HostMemory& host,
                std::uint64_t limit_bytes)
      : state_(state), host_(host), limit_bytes_(limit_bytes), timer_(io) {}

  /// Call it after every event. If no extent was taken or freed, it only makes two comparisons.
  void poll();

 private:
  struct Seen {
    std::uint64_t highest_id = 0;
    std::uint32_t free_extents = 0;
    bool operator==(const Seen&) const = default;
  };

  const State& state_;
  HostMemory& host_;
  std::uint64_t limit_bytes_;
  Seen seen_;
  bool is_armed_ = false;
  boost::asio::steady_timer timer_;
};

}  // namespace leasehold
