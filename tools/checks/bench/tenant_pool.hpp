/// Many tenants in one process, each with its own sockets to broker and worker, on one thread.
///
/// A client acquires a lease and submits requests one after another until it is destroyed. After a
/// revocation it acquires a new lease (`refill`). Threads: any; each call takes a lock.
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
  std::uint32_t clients = 1;       ///< Client i is tenant "bench-<i>"; the caller admits it.
  std::uint32_t max_tokens = 100;  ///< Per request.
  bool refill = true;              ///< False: a revoked client does not acquire again.
};

/// The end of one lease, as its client saw it.
struct LeaseEnd {
  LeaseId lease;
  TimePoint at;        ///< The typed end was read and parsed.
  std::string reason;  ///< "Revoked" …
};

/// Time between two tokens of one request.
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

  /// A client that has read a token under its lease.
  struct Running {
    std::uint32_t client = 0;
    LeaseId lease;
  };
  std::vector<Running> running() const;

  /// Waits until that many clients run. Errors: TimedOut with the last error of a client.
  Result<void> await_running(std::size_t clients, Duration at_most) const;

  /// No client counts as running until its next token.
  void clear_running();

  /// Waits for the typed end of a lease. Nothing on timeout.
  std::optional<LeaseEnd> await_end(LeaseId lease, Duration at_most) const;

  /// Waits for a token of this client later than `after`; returns its time.
  std::optional<TimePoint> await_token(std::uint32_t client, TimePoint after,
                                       Duration at_most) const;

  /// Returns and clears the gaps recorded since the last call.
  std::vector<TokenGap> take_gaps();
  std::uint64_t tokens() const;
  /// Losses since the start; both should be 0.
  struct Losses {
    std::uint64_t tokens = 0;   ///< Emitted according to the end of the request, but never read.
    std::uint64_t streams = 0;  ///< Closed without a typed end.
  };
  Losses losses() const;
  /// Waits until `tokens()` reaches this number. Errors: TimedOut.
  Result<void> await_tokens(std::uint64_t tokens, Duration at_most) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace leasehold::bench
