#include "broker/server/broker_loop.hpp"

#include <boost/asio/post.hpp>
#include <utility>

#include "broker/server/effects.hpp"
#include "ipc/control/transport/send_batch.hpp"

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
  if (!running_) decide_queued();
}

void BrokerLoop::decide_queued() {
  running_ = true;
  while (!queue_.empty()) {
    const TimePoint now = clock_.now();
    if (const auto gap = pulse_.poll(now)) decide_now(BrokerStalled{*gap}, now);
    const Event next = std::move(queue_.front());
    queue_.pop_front();
    decide_now(next, now);
  }
  running_ = false;
  if (group_.is_empty()) return on_idle();
  flush_soon();
}

void BrokerLoop::flush_soon() {
  if (std::exchange(flush_is_due_, true)) return;
  boost::asio::post(io_, [this] {
    flush_is_due_ = false;
    flush_group();
  });
}

/// Repeats, because `on_idle` and the performed effects may post events with rows.
void BrokerLoop::flush() {
  while (!group_.is_empty()) flush_group();
}

void BrokerLoop::flush_group() {
  if (group_.is_empty()) return;
  const control::SendBatch batch;
  running_ = true;
  group_.flush(performer_);
  running_ = false;
  if (queue_.empty()) return on_idle();
  decide_queued();
}

void BrokerLoop::poll() {
  if (const auto gap = pulse_.poll(clock_.now())) post(BrokerStalled{*gap});
}

void BrokerLoop::decide_now(const Event& event, TimePoint now) {
  group_.add(decide(state_, event, now), performer_);
}

}  // namespace leasehold
