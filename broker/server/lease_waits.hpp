/// Calls of `lease.wait`, which the broker answers when their leases are over.
///
/// After an event each call looks only at the first of its leases that is not over, so its cost
/// depends neither on other leases nor on the number of its own. Lifetime: the arguments outlive
/// it. Threads: the io_context's thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "broker/books/state.hpp"
#include "common/clock.hpp"
#include "ipc/control/messages/waits/lease_wait.hpp"
#include "ipc/control/transport/peer.hpp"

namespace leasehold {

class LeaseWaits {
 public:
  static constexpr std::size_t kMaxWaiting = 256;

  /// `flush` is called before calls are answered whose time is up: afterwards the state shows
  /// nothing that is not on disk.
  LeaseWaits(boost::asio::io_context& io, const State& state, const Clock& clock,
             std::function<void()> flush)
      : io_(io), state_(state), clock_(clock), flush_(std::move(flush)) {}

  /// Answers now or later. Takes the responder unless the call is refused. Errors: UnknownLease,
  /// QueueFull.
  Result<void> add(ConnectionId caller, wire::LeaseWait wait, control::Responder& respond);

  /// Answers the calls whose leases are over or whose time is up. Call it after every event.
  void poll();

  /// Drops the calls of a connection that has ended.
  void forget(ConnectionId caller);

  std::size_t waiting() const { return waits_.size(); }

 private:
  struct Wait {
    ConnectionId caller;
    wire::LeaseWait message;
    std::size_t first_open = 0;  ///< The leases before it are over.
    TimePoint deadline;
    control::Responder respond;
    std::unique_ptr<boost::asio::steady_timer> timer;
  };
  Result<void> check_granted(const std::vector<LeaseId>& leases) const;
  void add_revoked(const std::string& worker, std::vector<LeaseId>& leases) const;
  bool is_over(LeaseId lease, bool until_free) const;
  bool is_done(Wait& wait) const;
  control::Json reply_to(const Wait& wait) const;

  boost::asio::io_context& io_;
  const State& state_;
  const Clock& clock_;
  std::function<void()> flush_;
  std::list<Wait> waits_;
};

}  // namespace leasehold
