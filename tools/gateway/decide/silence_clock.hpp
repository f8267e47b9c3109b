/// Decides from what a host sends, and when, whether it is silent. Pure; time is an argument.
///
/// An exchange is *silent* after two missing beats, and another host is asked beside it. It has
/// *failed* after three, without an answer for `head_timeout`, or with beats and no group for
/// `progress_timeout`.
///
/// The gateway may not have run, so that what the host has sent was not read. So a deadline counts
/// only at a second timer, 50 ms after the first.
///
/// Threads: one at a time.
#pragma once

#include <optional>
#include <string>

#include "common/clock.hpp"
#include "tools/gateway/decide/text_events.hpp"

namespace leasehold::gateway {

struct SilenceLimits {
  Duration beat = std::chrono::milliseconds(500);
  Duration head_timeout = std::chrono::seconds(5);       ///< From the request to the answer's head.
  Duration progress_timeout = std::chrono::minutes(10);  ///< From one group to the next.
};

/// Clock of one exchange with a host.
class SilenceClock {
 public:
  /// Why an exchange has failed. `what` is a sentence without its subject, the host.
  struct Failure {
    MoveCause cause;
    std::string what;
  };

  SilenceClock(const SilenceLimits& limits, TimePoint now)
      : limits_(limits), heard_(now), progressed_(now), look_at_(now + kLookInterval) {}

  void accepted(TimePoint now);
  /// Bytes have arrived, such as a beat. Beats come during prefill too, so that a long prompt does
  /// not look like a dead host.
  void heard(TimePoint now);
  /// A group has arrived.
  void progressed(TimePoint now) { progressed_ = now; }

  bool is_accepted() const { return is_accepted_; }
  bool is_silent() const { return is_silent_; }
  /// When to call `failure` and `takes_look` next.
  TimePoint deadline() const;
  /// What has failed by `now`; notes silence.
  std::optional<Failure> failure(TimePoint now);
  /// True ten times a second until the host accepts: its state may show that it is frozen.
  bool takes_look(TimePoint now);

 private:
  static constexpr Duration kLookInterval = std::chrono::milliseconds(100);

  TimePoint fails_at() const;
  TimePoint stage_ends() const;
  bool is_sure(TimePoint now);

  SilenceLimits limits_;
  TimePoint heard_;       // the last bytes, or the beginning
  TimePoint progressed_;  // the last group, or the beginning
  TimePoint look_at_;
  std::optional<TimePoint> doubted_until_;  // a deadline has passed; it counts then
  bool is_accepted_ = false;
  bool is_silent_ = false;
};

}  // namespace leasehold::gateway
