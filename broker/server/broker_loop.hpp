/// Hands events to `decide`, one at a time, and performs what comes out. Nothing else.
///
/// Effects may lead to further events; those wait their turn. Threads: one.
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

  /// Performs what recovery decided; decides nothing before all of it is done.
  void begin(const std::vector<Effect>& effects);

  /// Decides the event and all that follow from it, then calls `on_idle`.
  void post(Event event);

  /// Called every Pulse::kPollInterval, so that a loop with nothing to do is not taken for one that
  /// stands.
  void poll();

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
