/// How long a tenant's bodies wait before they are parsed.
///
/// Each tenant has the same rate as for lines on the tenant socket
/// (worker/serve/connection_limiter.hpp), because all tenants share the threads that parse long
/// bodies. Threads: the one that runs `io`.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstddef>
#include <map>

#include "common/ids.hpp"
#include "common/token_bucket.hpp"
#include "ipc/control/transport/peer.hpp"

namespace leasehold::http {

class BodyRateLimiter {
 public:
  static constexpr Rate kRate{.per_second = 2'048, .burst = 2'048};  ///< In units of 1 KiB.

  /// Charges a body to its tenant and returns how long it must wait. The tenant's later bodies wait
  /// behind it.
  Duration reserve(const TenantId& tenant, std::size_t size_bytes, TimePoint now) {
    if (left_.size() >= kMaxTenants && !left_.contains(tenant))
      left_.clear();  // bounds the memory, and gives each tenant at most one burst more
    TokenBucket& left = left_.try_emplace(tenant, kRate, now).first->second;
    return left.reserve(control::weight_of_line(size_bytes), now);
  }

 private:
  static constexpr std::size_t kMaxTenants = 4096;

  std::map<TenantId, TokenBucket> left_;
};

/// Waits without delaying the bodies of other tenants or any stream.
inline boost::asio::awaitable<void> async_wait_for(boost::asio::io_context& io, Duration wait) {
  boost::asio::steady_timer turn(io, wait);
  co_await turn.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
}

}  // namespace leasehold::http
