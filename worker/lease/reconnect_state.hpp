/// How a worker gets back to a broker that went away. Pure: time is an argument.
///
///   Attached ─lost─► Disconnected ─due, connected─► Resuming ─resumed─► Redelivering ─all said─►
///   Attached
///                     ▲ │                      │                   │
///                     │ └─timeout over────────┼───────────────────┼──► Lost
///                     └──────lost, no answer───┴──lost, no answer──┘
///                                              └──said no──────────┴──► Lost
///
/// Lost is final: the leases run to the deadlines they hold, then the worker ends.
/// Threads: one.
#pragma once

#include "common/clock.hpp"
#include "common/errc.hpp"

namespace leasehold {

class ReconnectState {
 public:
  enum class Phase : std::uint8_t { Attached, Disconnected, Resuming, Redelivering, Lost };

  /// How long nobody may be there before it is called final.
  explicit ReconnectState(Duration timeout) : timeout_(timeout) {}

  Phase phase() const { return phase_; }
  /// When to try to connect; meaningful while Disconnected.
  TimePoint next_attempt() const { return next_attempt_; }

  /// The connection is gone, whatever was under way.
  void connection_lost(TimePoint now);
  /// Nobody to connect to. Precondition: Disconnected.
  void connect_failed(TimePoint now);
  /// Precondition: Disconnected.
  void connected();
  /// The broker knows this attachment. Precondition: Resuming.
  void resumed();
  /// Everything was delivered and `worker.ready` answered. Precondition: Redelivering.
  void reattached();
  /// The broker answered with an error, or not at all. Precondition: Resuming or Redelivering.
  void request_failed(Errc code, TimePoint now);
  /// For a worker that must not come back: it was never ready.
  void give_up() { phase_ = Phase::Lost; }

 private:
  void back_off(TimePoint now);

  Duration timeout_;
  Phase phase_ = Phase::Attached;
  TimePoint next_attempt_;
  TimePoint give_up_deadline_;
  Duration backoff_{};
};

}  // namespace leasehold
