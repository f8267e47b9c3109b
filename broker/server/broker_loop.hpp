/// Passes events to `decide` one at a time and performs the resulting effects.
///
/// Events that effects post are queued behind the current one. Effects that wait for the journal
/// (EffectGroup) are performed at the end of the io_context's turn. Threads: the io_context's
/// thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <deque>
#include <functional>

#include "broker/decide/core.hpp"
#include "broker/decide/effect_group.hpp"
#include "broker/server/pulse.hpp"

namespace leasehold {

class ServerEffects;

class BrokerLoop {
 public:
  BrokerLoop(boost::asio::io_context& io, State& state, const Clock& clock,
             ServerEffects& performer)
      : io_(io), state_(state), clock_(clock), performer_(performer), pulse_(clock.now()) {}

  /// Performs the effects of recovery. No event is decided before all of these effects are done.
  void begin(const std::vector<Effect>& effects);

  /// Decides the event and all events that follow from it.
  void post(Event event);

  /// Performs the effects that wait, so that the state shows nothing that is not on disk. Not for
  /// functions that effects call.
  void flush();

  /// Call at least every Pulse::kPollInterval, so that an idle loop does not look stalled.
  void poll();
  /// See Pulse::rest.
  void rest() { pulse_.rest(); }

  /// Called when all effects of the decided events are performed.
  std::function<void()> on_idle = [] {};

 private:
  void decide_queued();
  void flush_soon();
  void flush_group();
  void decide_now(const Event& event, TimePoint now);

  boost::asio::io_context& io_;
  State& state_;
  const Clock& clock_;
  ServerEffects& performer_;
  Pulse pulse_;
  std::deque<Event> queue_;
  EffectGroup group_;
  bool running_ = false;
  bool flush_is_due_ = false;
};

}  // namespace leasehold
