/// A worker that is attached to its broker: answers the broker's calls, and follows its connection.
///
/// The calls about step sampling and admission are answered here. All others go to the current
/// stage: to EarlyCalls while the worker loads, then to what `serve` is given.
///
/// Threads: `attach` and destruction on the main thread; `serve` and the handlers on the I/O
/// thread, so that a call meets either the loading or the serving stage. The parts have their own
/// rules. Lifetime: `opened` outlives it.
#pragma once

#include <memory>

#include "worker/http/health.hpp"
#include "worker/lease/broker_session.hpp"
#include "worker/lease/early_calls.hpp"
#include "worker/lease/step_reporter.hpp"
#include "worker/program/stages/opened_worker.hpp"

namespace leasehold {

class AttachedWorker {
 public:
  /// Waits for the broker. Errors: those of BrokerSession::open.
  static Result<std::unique_ptr<AttachedWorker>> attach(OpenedWorker& opened);

  AttachedWorker(const AttachedWorker&) = delete;
  AttachedWorker& operator=(const AttachedWorker&) = delete;
  ~AttachedWorker() { opened_->stop_io(); }

  OpenedWorker& opened() { return *opened_; }
  BrokerSession& broker() { return *broker_; }
  http::Health& health() { return health_; }  ///< The worker counts as loading at first.
  StepSampler& step_sampler() { return step_sampler_; }
  StepReporter& step_reporter() { return step_reporter_; }
  EarlyCalls& early_calls() { return early_calls_; }

  /// Ends the loading stage: `leases` answers the calls that wait, and `stage` handles what
  /// follows.
  void serve(BrokerSession::Handlers stage, LeaseService& leases);

 private:
  explicit AttachedWorker(OpenedWorker& opened);
  BrokerSession::Handlers handlers();
  BrokerSession::Handlers loading_stage();
  void on_call(const std::string& method, control::Payload params, control::Responder respond);
  Result<control::Payload> set_sampling(const control::Json& params);
  Result<control::Payload> set_admission(const control::Json& params);

  OpenedWorker* opened_;
  http::Health health_;
  StepSampler step_sampler_;
  StepReporter step_reporter_;
  EarlyCalls early_calls_;
  BrokerSession::Handlers stage_;
  std::unique_ptr<BrokerSession> broker_;
};

}  // namespace leasehold
