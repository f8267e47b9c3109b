#include "worker/program/broker_events.hpp"

#include <spdlog/spdlog.h>

#include <chrono>
#include <utility>

namespace leasehold {

BrokerEvents::BrokerEvents(boost::asio::io_context& io)
    : early_calls_(io), stage_(loading_stage()) {
  health_.set_loading(true);
}

BrokerSession::Handlers BrokerEvents::handlers() {
  return {
      .on_call =
          [this](const std::string& method, control::Payload params, control::Responder respond) {
            on_call(method, std::move(params), std::move(respond));
          },
      .on_connection_changed = [this](bool disconnected) { connection_changed(disconnected); },
      .on_broker_lost =
          [this](const Error& why) {
            spdlog::error("broker lost reason=\"{}\"", why.detail);
            stage_.on_broker_lost(why);
          }};
}

BrokerSession::Handlers BrokerEvents::loading_stage() {
  return {
      .on_call =
          [this](const std::string& method, control::Payload params, control::Responder respond) {
            early_calls_.on_call(method, std::move(params), std::move(respond));
          },
      .on_connection_changed = [](bool) {},
      .on_broker_lost = [](const Error&) {}};  // the worker's next call to the broker fails
}

void BrokerEvents::serve(BrokerSession::Handlers stage, LeaseService& leases) {
  stage_ = std::move(stage);
  early_calls_.forward_to(leases);
}

void BrokerEvents::on_call(const std::string& method, control::Payload params,
                           control::Responder respond) {
  if (method == wire::StepSampling::kMethod) return respond(set_sampling(params.body));
  if (method == wire::WorkerAdmission::kMethod) return respond(set_admission(params.body));
  stage_.on_call(method, std::move(params), std::move(respond));
}

/// Sampling ends with the connection; after a reconnect the broker requests it again if an operator
/// still watches.
void BrokerEvents::connection_changed(bool disconnected) {
  health_.set_broker_disconnected(disconnected);
  if (disconnected) step_sampler_.set_interval(Duration::zero());
  stage_.on_connection_changed(disconnected);
}

Result<control::Payload> BrokerEvents::set_sampling(const control::Json& params) {
  const wire::StepSampling sampling = TRY(wire::StepSampling::from_json(params));
  step_sampler_.set_interval(std::chrono::milliseconds(sampling.interval_ms));
  return control::Payload{.body = wire::Empty{}.to_json()};
}

Result<control::Payload> BrokerEvents::set_admission(const control::Json& params) {
  const auto admission = TRY(wire::WorkerAdmission::from_json(params));
  health_.set_admitting(admission.admits);
  health_.set_incarnation(admission.incarnation);
  return control::Payload{.body = wire::Empty{}.to_json()};
}

}  // namespace leasehold
