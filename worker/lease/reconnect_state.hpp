/// How a worker gets back to a broker that went away. Pure: time is an argument.
///
///   Together ─lost─► Away ─due, connected─► Asking ─resumed─► Delivering ─all said─► Together
///                     ▲ │                      │                   │
///                     │ └─patience over────────┼───────────────────┼──► Refused
///                     └──────lost, no answer───┴──lost, no answer──┘
///                                              └──said no──────────┴──► Refused
///
/// Refused is final: the leases run to the deadlines they hold, then the worker ends.
/// Threads: one.
#pragma once

#include "common/clock.hpp"
#include "common/errc.hpp"

namespace leasehold {

class ReconnectState {
 public:
  enum class Phase : std::uint8_t { Together, Away, Asking, Delivering, Refused };

  /// How long nobody may be there before it is called final.
  explicit ReconnectState(Duration patience) : patience_(patience) {}

  Phase phase() const { return phase_; }
  /// When to try to connect; meaningful while Away.
  TimePoint next_try() const { return next_try_; }

  /// The connection is gone, whatever was under way.
  void lost(TimePoint now);
  /// Nobody to connect to. Precondition: Away.
  void not_connected(TimePoint now);
  /// Precondition: Away.
  void connected();
  /// The broker knows this attachment. Precondition: Asking.
  void resumed();
  /// Everything was delivered and `worker.ready` answered. Precondition: Delivering.
  void settled();
  /// The broker answered with an error, or not at all. Precondition: Asking or Delivering.
  void answered_with(Errc code, TimePoint now);
  /// For a worker that must not come back: it was never ready.
  void give_up() { phase_ = Phase::Refused; }

 private:
  void wait(TimePoint now);

  Duration patience_;
  Phase phase_ = Phase::Together;
  TimePoint next_try_;
  TimePoint give_up_at_;
  Duration pause_{};
};

}  // namespace leasehold
