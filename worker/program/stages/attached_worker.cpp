#include "worker/program/stages/attached_worker.hpp"

#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>
#include <utility>

namespace leasehold {

Result<std::unique_ptr<AttachedWorker>> AttachedWorker::attach(OpenedWorker& opened) {
  const WorkerOptions& options = opened.options;
  std::unique_ptr<AttachedWorker> worker(new AttachedWorker(opened));
  worker->broker_ = TRY(BrokerSession::open(opened.io.context(), opened.clock,
                                            {.broker_socket = options.broker_socket,
                                             .worker_name = options.name,
                                             .timeout = options.broker_timeout},
                                            worker->handlers()));
  const Attachment& attachment = worker->broker_->attachment();
  spdlog::info("attached to the broker worker={} slots={}", attachment.worker.value,
               attachment.table.slot_count());
  return worker;
}

AttachedWorker::AttachedWorker(OpenedWorker& opened)
    : opened_(&opened),
      step_reporter_({.sampler = &step_sampler_,
                      .post = [&io = opened.io](
                                  auto work) { boost::asio::post(io.context(), std::move(work)); },
                      .send =
                          [this](const wire::WorkerStep& step, std::function<void()> on_reply) {
                            broker_->link().report_step(step, std::move(on_reply));
                          }}),
      early_calls_(opened.io.context()),
      stage_(loading_stage()) {
  health_.set_loading(true);
}

BrokerSession::Handlers AttachedWorker::handlers() {
  return {
      .on_call =
          [this](const std::string& method, control::Payload params, control::Responder respond) {
            on_call(method, std::move(params), std::move(respond));
          },
      .on_connection_changed =
          [this](bool disconnected) {
            health_.set_broker_disconnected(disconnected);
            if (disconnected) step_reporter_.connection_lost();
            stage_.on_connection_changed(disconnected);
          },
      .on_broker_lost =
          [this](const Error& why) {
            spdlog::error("broker lost reason=\"{}\"", why.detail);
            stage_.on_broker_lost(why);
          }};
}

BrokerSession::Handlers AttachedWorker::loading_stage() {
  return {
      .on_call =
          [this](const std::string& method, control::Payload params, control::Responder respond) {
            early_calls_.on_call(method, std::move(params), std::move(respond));
          },
      .on_connection_changed = [](bool) {},
      .on_broker_lost = [](const Error&) {}};  // the next call to the broker fails
}

void AttachedWorker::serve(BrokerSession::Handlers stage, LeaseService& leases) {
  stage_ = std::move(stage);
  early_calls_.pass_on(leases);
}

void AttachedWorker::on_call(const std::string& method, control::Payload params,
                             control::Responder respond) {
  if (method == wire::StepSampling::kMethod) return respond(set_sampling(params.body));
  if (method == wire::WorkerAdmission::kMethod) return respond(set_admission(params.body));
  stage_.on_call(method, std::move(params), std::move(respond));
}

Result<control::Payload> AttachedWorker::set_sampling(const control::Json& params) {
  step_reporter_.set_sampling(TRY(wire::StepSampling::from_json(params)));
  return control::Payload{.body = wire::Empty{}.to_json()};
}

Result<control::Payload> AttachedWorker::set_admission(const control::Json& params) {
  health_.set_admitting(TRY(wire::WorkerAdmission::from_json(params)).admits);
  return control::Payload{.body = wire::Empty{}.to_json()};
}

}  // namespace leasehold
