/// A broker that lends weights, and a model of two layers to load from it.
///
/// Threads: the broker answers on a thread of its own.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "tests/support/gguf_builder.hpp"
#include "tests/support/temporary_directory.hpp"
#include "worker/lease/weights_source.hpp"

namespace leasehold::testing {

class FakeWeightsBroker {
 public:
  using Answer =
      std::function<Result<control::Payload>(const std::string& method, const control::Json&)>;

  explicit FakeWeightsBroker(Answer answer)
      : broker_(control::Peer::create(
            acceptor_.accept(),
            {.on_call = [answer = std::move(answer)](
                            const std::string& method, const control::Payload& params,
                            control::Responder respond) { respond(answer(method, params.body)); },
             .on_notification = nullptr,
             .on_closed = [](const Error&) {}})) {
    broker_->start();
    io_thread_ = std::thread([this] { io_.run(); });
  }
  ~FakeWeightsBroker() {
    io_.stop();
    io_thread_.join();
  }
  FakeWeightsBroker(const FakeWeightsBroker&) = delete;
  FakeWeightsBroker& operator=(const FakeWeightsBroker&) = delete;

  Result<Weights> load(WeightsSource::Dependencies dependencies) {
    dependencies.retry_interval = Duration::zero();
    return source(plan_, std::move(dependencies)).acquire();
  }
  /// `plan` outlives it.
  WeightsSource source(const WeightsPlan& plan, WeightsSource::Dependencies dependencies) {
    dependencies.broker = link_.get();
    return WeightsSource(file_, config_, plan, std::move(dependencies));
  }
  const ModelConfig& config() const { return config_; }
  const WeightsPlan& plan() const { return plan_; }
  WeightsPlan plan_of(WeightsScope scope) const {
    return make_weights_plan(make_weights_layout(file_, config_).value(), scope);
  }

 private:
  TemporaryFile model_{testing::tiny_llama().bytes()};
  GgufFile file_ = GgufFile::open(model_.path()).value();
  ModelConfig config_ = read_config(file_).value();
  WeightsPlan plan_ = plan_of(WeightsScope::Layer);
  TemporaryDirectory folder_ = TemporaryDirectory::create("weights").value();
  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_ =
      boost::asio::make_work_guard(io_);
  boost::asio::local::stream_protocol::acceptor acceptor_ =
      control::listen_on(io_, folder_.file("s"), 0600).value();
  std::unique_ptr<BrokerLink> link_ =
      BrokerLink::connect(io_, folder_.file("s"),
                          {.on_call = {}, .on_disconnected = [](const Error&) {}})
          .value();
  std::shared_ptr<control::Peer> broker_;
  std::thread io_thread_;
};

}  // namespace leasehold::testing
