/// One request of one tenant that continues under new leases and after deaths, with the time of
/// every step of a rebind.
///
/// Lifetime: the destructor cancels the request and waits at most three seconds for its end.
/// Threads: any; each call takes a lock. The session runs on a separate thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ipc/client/session.hpp"

namespace leasehold::bench {

struct RebindingTextConfig {
  std::string broker_socket;
  std::string tenant;
  std::uint32_t prompt_tokens = 4;
  std::uint32_t max_tokens = 100;
  client::RetryPolicy retry = {};
};

/// Retries a millisecond after each refusal, so that figures include no delays of the client.
inline constexpr client::RetryPolicy kEagerRetry{.max_attempts = 1'000'000,
                                                 .first_delay = std::chrono::milliseconds(1),
                                                 .max_delay = std::chrono::milliseconds(2)};

class RebindingText {
 public:
  explicit RebindingText(const RebindingTextConfig& config);
  ~RebindingText();
  RebindingText(const RebindingText&) = delete;
  RebindingText& operator=(const RebindingText&) = delete;

  /// The end of a rebind that waited for a new lease.
  struct Recovered {
    TimePoint granted;
    TimePoint token;  ///< The first token under the new lease.
  };

  /// Leases granted so far, in order. A later broker may reuse an id.
  std::vector<LeaseId> leases() const;
  std::size_t tokens() const;
  bool has_ended() const;
  /// Times in ms between tokens so far.
  std::vector<double> gaps_ms() const;
  /// Rebinds of this mode so far.
  std::vector<client::Rebound> rebounds(wire::RebindMode mode) const;

  /// Every wait ends after five minutes. Errors: TimedOut; if the text ends first, its error, or
  /// SystemError if it has none.
  Result<void> await_tokens(std::size_t count) const;
  /// Waits for the first token under the lease that was granted as number `grant`, from 0.
  Result<Recovered> await_grant(std::size_t grant) const;
  /// Waits for the first token that arrives after `since`, and returns its time.
  Result<TimePoint> await_token_after(TimePoint since) const;
  Result<void> await_rebounds(wire::RebindMode mode, std::size_t count) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace leasehold::bench
