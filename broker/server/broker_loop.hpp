/// Passes events to `decide` one at a time and performs the resulting effects.
///
/// Events that effects post are queued behind the current one. Threads: one.
#pragma once

#include <deque>
#include <functional>

#include "broker/decide/core.hpp"
#include "broker/server/pulse.hpp"

namespace leasehold {

class ServerEffects;

class BrokerLoop {
 public:
  BrokerLoop(State& state, const Clock& clock, ServerEffects& performer)
      : state_(state), clock_(clock), performer_(performer), pulse_(clock.now()) {}

  /// Performs the effects of recovery. No event is decided before all of these effects are done.
  void begin(const std::vector<Effect>& effects);

  /// Decides the event and all events that follow from it, then calls `on_idle`.
  void post(Event event);

  /// Call at least every Pulse::kPollInterval, so that an idle loop does not look stalled.
  void poll();
  /// See Pulse::rest.
  void rest() { pulse_.rest(); }

  std::function<void()> on_idle = [] {};

 private:
  void decide_now(const Event& event, TimePoint now);

  State& state_;
  const Clock& clock_;
  ServerEffects& performer_;
  Pulse pulse_;
  std::deque<Event> queue_;
  bool running_ = false;
};

}  // namespace leasehold
