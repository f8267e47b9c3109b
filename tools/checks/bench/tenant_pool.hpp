/// Many tenants in one process: each a real holder with a socket to the broker and one to the
/// worker, all on one thread, so that the tenant_pool itself takes little of a small machine.
///
/// A client acquires, submits, and goes on for ever: a request that is answered is followed by
/// another under the same lease; a lease that was taken back is followed by a fresh one (`refill`).
/// Threads: any; each call takes a lock.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.hpp"
#include "common/ids.hpp"
#include "common/result.hpp"

namespace leasehold::bench {

struct TenantPoolConfig {
  std::string broker_socket;
  std::uint32_t clients = 1;       ///< Tenant i is called "bench-<i>", and admitted before.
  std::uint32_t max_tokens = 100;  ///< Of one request.
  bool refill = true;              ///< False: a client whose lease was taken back stays empty.
};

/// What a client saw of the end of one lease.
struct LeaseEnd {
  LeaseId lease;
  TimePoint at;        ///< The typed end was read from the socket and understood.
  std::string reason;  ///< "Revoked" …
};

/// Between two tokens that reached one client in one request.
struct TokenGap {
  std::uint32_t client = 0;
  double gap_us = 0;
};

class TenantPool {
 public:
  explicit TenantPool(TenantPoolConfig config);
  ~TenantPool();
  TenantPool(const TenantPool&) = delete;
  TenantPool& operator=(const TenantPool&) = delete;

  /// Leases with at least one token under them, by client; clients without one are left out.
  struct Running {
    std::uint32_t client = 0;
    LeaseId lease;
  };
  std::vector<Running> running() const;

  /// Waits until that many clients run. Errors: TimedOut with the last error a client met.
  Result<void> await_running(std::size_t clients, Duration at_most) const;

  /// Nobody counts as running until its next token.
  void clear_running();

  /// Waits for the typed end of a lease. Nothing when none came.
  std::optional<LeaseEnd> await_end(LeaseId lease, Duration at_most) const;

  /// Waits for a token at this client later than `after`; when it came.
  std::optional<TimePoint> await_token(std::uint32_t client, TimePoint after,
                                       Duration at_most) const;

  /// All gaps since the last call.
  std::vector<TokenGap> take_gaps();
  std::uint64_t tokens() const;
  /// What should not happen, since the beginning.
  struct Losses {
    std::uint64_t tokens = 0;   ///< Emitted, as the request's end said, and never read.
    std::uint64_t streams = 0;  ///< Ended without a typed end.
  };
  Losses losses() const;
  /// Waits until `tokens()` has reached a number. Errors: TimedOut.
  Result<void> await_tokens(std::uint64_t tokens, Duration at_most) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace leasehold::bench
