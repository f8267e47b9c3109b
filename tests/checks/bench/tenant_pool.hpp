/// Many tenants in one process, each with separate sockets to broker and worker, on one thread.
///
/// A client acquires a lease and submits requests one after another until it is destroyed. After a
/// revocation it acquires a new lease, unless that of its adapter was revoked. Threads: any; each
/// call takes a lock.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.hpp"
#include "common/ids.hpp"
#include "common/result.hpp"
#include "ipc/control/messages/tenant.hpp"

namespace leasehold::bench {

struct TenantPoolConfig {
  std::string broker_socket;
  std::uint32_t clients = 1;        ///< Client i is tenant "<name>-<i>"; the caller admits it.
  std::uint32_t prompt_tokens = 4;  ///< Per request.
  std::uint32_t max_tokens = 100;   ///< Per request.
  std::string name = "bench";
  wire::Sampling sampling = {};  ///< Each request has a different seed.
  /// The prompt of a request of a client; both are counted from 0. Empty: `prompt_tokens` words,
  /// the same each time.
  std::function<std::vector<std::int32_t>(std::uint32_t client, std::uint64_t request)> prompt = {};
  /// The adapter of a request, counted as above. Empty: the base model.
  std::function<std::string(std::uint32_t client, std::uint64_t request)> adapter = {};
};

/// The end of one lease, as its client saw it.
struct LeaseEnd {
  TimePoint at;        ///< The typed end was read and parsed.
  std::string reason;  ///< "Revoked" …
};

class TenantPool {
 public:
  static constexpr const char* kThreadName = "bench-tenants";
  /// A word in the vocabulary of every bundled model. The next kPromptWords - 1 tokens are words,
  /// too.
  static constexpr std::int32_t kFirstPromptToken = 300;
  static constexpr std::int32_t kPromptWords = 100;

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

  /// Waits until this many clients run. Errors: TimedOut with the last error of a client.
  Result<void> await_running(std::size_t clients, Duration at_most) const;

  /// No client counts as running until its next token.
  void clear_running();

  /// Waits for the typed end of a client's lease, or of its adapter's. Returns nullopt on timeout.
  std::optional<LeaseEnd> await_end(LeaseId lease, Duration at_most) const;

  /// Waits for a token of this client later than `after`; returns its time.
  std::optional<TimePoint> await_token(std::uint32_t client, TimePoint after,
                                       Duration at_most) const;

  /// The last error of a client that a retry cannot resolve.
  std::optional<Error> final_error() const;

  /// Returns the times in µs between two tokens of one request, of all clients, since the last
  /// call.
  std::vector<double> take_gaps_us();
  /// Returns the times in s from a submission to its first token, of all clients, since the last
  /// call.
  std::vector<double> take_first_tokens_s();
  std::uint64_t tokens() const;
  /// Losses since the start; both should be 0.
  struct Losses {
    std::uint64_t tokens = 0;   ///< Emitted according to the end of the request, but never read.
    std::uint64_t streams = 0;  ///< Requests closed without a typed end.
  };
  Losses losses() const;
  /// Waits until `tokens()` reaches this number. Errors: TimedOut.
  Result<void> await_tokens(std::uint64_t tokens, Duration at_most) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace leasehold::bench
