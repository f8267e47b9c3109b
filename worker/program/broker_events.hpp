/// Handles what the session with the broker reports: the broker's calls, and its connection.
///
/// Calls about step sampling and admission are answered here, and the connection's state goes to
/// `/health`. All else goes to the current stage: first to EarlyCalls, while the worker loads, then
/// to the handlers that `serve` is given.
///
/// Threads: `serve` and the handlers on the I/O thread, so that a call meets either the loading or
/// the serving stage. The objects that it returns have their own rules. Lifetime: outlives the
/// session.
#pragma once

#include "worker/engine/step_sampler.hpp"
#include "worker/http/health.hpp"
#include "worker/lease/broker_session.hpp"
#include "worker/lease/early_calls.hpp"

namespace leasehold {

class BrokerEvents {
 public:
  /// The worker counts as loading until `health` is set otherwise.
  explicit BrokerEvents(boost::asio::io_context& io);
  BrokerEvents(const BrokerEvents&) = delete;
  BrokerEvents& operator=(const BrokerEvents&) = delete;

  /// The handlers of the session.
  BrokerSession::Handlers handlers();
  /// Ends the loading stage: `leases` answers the calls that wait, and `stage` handles what
  /// follows.
  void serve(BrokerSession::Handlers stage, LeaseService& leases);

  http::Health& health() { return health_; }
  StepSampler& step_sampler() { return step_sampler_; }
  EarlyCalls& early_calls() { return early_calls_; }

 private:
  BrokerSession::Handlers loading_stage();
  void on_call(const std::string& method, control::Payload params, control::Responder respond);
  void connection_changed(bool disconnected);
  Result<control::Payload> set_sampling(const control::Json& params);
  Result<control::Payload> set_admission(const control::Json& params);

  http::Health health_;
  StepSampler step_sampler_;
  EarlyCalls early_calls_;
  BrokerSession::Handlers stage_;
};

}  // namespace leasehold
