#include "broker/server/broker_loop.hpp"

#include "broker/server/effects.hpp"

namespace leasehold {

void BrokerLoop::begin(const std::vector<Effect>& effects) {
  running_ = true;
  perform_all(effects, performer_);
  running_ = false;
  post(Tick{});
}

void BrokerLoop::post(Event event) {
  queue_.push_back(std::move(event));
  if (running_) return;
  running_ = true;
  while (!queue_.empty()) {
    const Event next = std::move(queue_.front());
    queue_.pop_front();
    perform_all(decide(state_, next, clock_.now()), performer_);
  }
  running_ = false;
  on_settled();
}

}  // namespace leasehold
