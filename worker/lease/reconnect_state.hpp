/// The state machine for a worker's reconnect to its broker. Pure: time is an argument.
///
///   Attached ──lost──► Disconnected ──connected──► Resuming ──resumed──► Redelivering
///      ▲                ▲  │                          │                     │   │
///      │                │  └─timeout─► Lost           │                     │   │
///      │                └─────────lost, no answer─────┴─────────────────────┘   │
///      └──────────────────────────────reattached────────────────────────────────┘
///
/// A final error of the broker leads from Resuming and Redelivering to Lost. Lost is final: the
/// leases run to their deadlines, then the worker ends.
/// Threads: one.
#pragma once

#include "common/clock.hpp"
#include "common/errc.hpp"

namespace leasehold {

class ReconnectState {
 public:
  enum class Phase : std::uint8_t { Attached, Disconnected, Resuming, Redelivering, Lost };

  /// `timeout`: how long the worker tries to reconnect.
  explicit ReconnectState(Duration timeout) : timeout_(timeout) {}

  Phase phase() const { return phase_; }
  /// The time of the next connection attempt. Precondition: Disconnected.
  TimePoint next_attempt() const { return next_attempt_; }

  /// The connection is lost, in any phase.
  void connection_lost(TimePoint now);
  /// No broker listens. Precondition: Disconnected.
  void connect_failed(TimePoint now);
  /// Precondition: Disconnected.
  void connected();
  /// The broker resumed this attachment. Precondition: Resuming.
  void resumed();
  /// All memory is redelivered and `worker.ready` is answered. Precondition: Redelivering.
  void reattached();
  /// The broker answered with an error or not at all. Precondition: Resuming or Redelivering.
  void request_failed(Errc code, TimePoint now);
  /// Used for a worker that was never ready, which must not reconnect.
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
