#include "worker/lease/reconnect_state.hpp"

#include <algorithm>

#include "common/expects.hpp"

namespace leasehold {
namespace {

constexpr Duration kFirstPause = std::chrono::milliseconds(5);
constexpr Duration kLongestPause = std::chrono::milliseconds(200);

/// Worth another try: the answer speaks of the moment, not of this attachment. BrokerLost is
/// retryable for whoever asks a worker, but said to a worker it is the broker's last word.
bool may_pass(Errc code) {
  return is_retryable(code) && code != Errc::BrokerLost;
}

}  // namespace

void ReconnectState::lost(TimePoint now) {
  if (phase_ == Phase::Refused || phase_ == Phase::Away) return;
  if (phase_ == Phase::Together) {
    give_up_at_ = now + patience_;
    pause_ = kFirstPause;
  }
  wait(now);
}

void ReconnectState::not_connected(TimePoint now) {
  expects(phase_ == Phase::Away, "a worker tries to connect while it is away");
  wait(now);
}

void ReconnectState::wait(TimePoint now) {
  phase_ = now < give_up_at_ ? Phase::Away : Phase::Refused;
  next_try_ = std::min(now + pause_, give_up_at_);
  pause_ = std::min(2 * pause_, kLongestPause);
}

void ReconnectState::connected() {
  expects(phase_ == Phase::Away, "a worker connects while it is away");
  phase_ = Phase::Asking;
}

void ReconnectState::resumed() {
  expects(phase_ == Phase::Asking, "a worker is resumed when it asked");
  phase_ = Phase::Delivering;
}

void ReconnectState::settled() {
  expects(phase_ == Phase::Delivering, "a worker settles after it delivered");
  phase_ = Phase::Together;
}

void ReconnectState::answered_with(Errc code, TimePoint now) {
  expects(phase_ == Phase::Asking || phase_ == Phase::Delivering, "a worker asked something");
  if (!may_pass(code)) return give_up();
  wait(now);
}

}  // namespace leasehold
