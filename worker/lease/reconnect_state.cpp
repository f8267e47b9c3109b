#include "worker/lease/reconnect_state.hpp"

#include <algorithm>

#include "common/expects.hpp"

namespace leasehold {
namespace {

constexpr Duration kInitialBackoff = std::chrono::milliseconds(5);
constexpr Duration kMaxBackoff = std::chrono::milliseconds(200);

/// True for errors worth another attempt. BrokerLost is retryable for a client of a worker, but
/// final when the broker sends it to a worker.
bool is_transient(Errc code) {
  return is_retryable(code) && code != Errc::BrokerLost;
}

}  // namespace

void ReconnectState::connection_lost(TimePoint now) {
  if (phase_ == Phase::Lost || phase_ == Phase::Disconnected) return;
  if (phase_ == Phase::Attached) {
    give_up_deadline_ = now + timeout_;
    backoff_ = kInitialBackoff;
  }
  back_off(now);
}

void ReconnectState::connect_failed(TimePoint now) {
  expects(phase_ == Phase::Disconnected, "a worker connects while it is disconnected");
  back_off(now);
}

void ReconnectState::back_off(TimePoint now) {
  phase_ = now < give_up_deadline_ ? Phase::Disconnected : Phase::Lost;
  next_attempt_ = std::min(now + backoff_, give_up_deadline_);
  backoff_ = std::min(2 * backoff_, kMaxBackoff);
}

void ReconnectState::connected() {
  expects(phase_ == Phase::Disconnected, "a worker connects while it is disconnected");
  phase_ = Phase::Resuming;
}

void ReconnectState::resumed() {
  expects(phase_ == Phase::Resuming, "a worker is resumed after it asked");
  phase_ = Phase::Redelivering;
}

void ReconnectState::reattached() {
  expects(phase_ == Phase::Redelivering, "a worker is reattached after it redelivered");
  phase_ = Phase::Attached;
}

void ReconnectState::request_failed(Errc code, TimePoint now) {
  expects(phase_ == Phase::Resuming || phase_ == Phase::Redelivering,
          "a request fails only while one is in flight");
  if (!is_transient(code)) return give_up();
  back_off(now);
}

}  // namespace leasehold
