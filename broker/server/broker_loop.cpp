#include "broker/server/broker_loop.hpp"

#include "broker/server/effects.hpp"

namespace leasehold {

void BrokerLoop::begin(const std::vector<Effect>& effects) {
  running_ = true;
  perform_all(effects, performer_);
  running_ = false;
  (void)pulse_.poll(clock_.now());  // recovery time is not a stall
  post(Tick{});
}

void BrokerLoop::post(Event event) {
  queue_.push_back(std::move(event));
  if (running_) return;
  running_ = true;
  while (!queue_.empty()) {
    const TimePoint now = clock_.now();
    if (const auto gap = pulse_.poll(now)) decide_now(BrokerStalled{*gap}, now);
    const Event next = std::move(queue_.front());
    queue_.pop_front();
    decide_now(next, now);
  }
  running_ = false;
  on_idle();
}

void BrokerLoop::poll() {
  if (const auto gap = pulse_.poll(clock_.now())) post(BrokerStalled{*gap});
}

void BrokerLoop::decide_now(const Event& event, TimePoint now) {
  perform_all(decide(state_, event, now), performer_);
}

}  // namespace leasehold
