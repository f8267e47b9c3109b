#include "worker/program/stop_dependencies.hpp"

#include <utility>

namespace leasehold {

WorkerStop::Dependencies stop_dependencies(boost::asio::io_context& io, EngineLoop& loop,
                                           Serving& serving, BrokerSession& broker,
                                           HttpPart* http) {
  return {.io = &io,
          .stop_loop = [&loop] { loop.stop(); },
          .refuse_requests =
              [&serving, http](std::function<void()> done) {
                if (http != nullptr) http->drain();
                serving.server().drain(std::move(done));
              },
          .count_requests =
              [&loop](std::function<void(std::size_t)> done) {
                loop.post([done = std::move(done)](Engine& engine) {
                  const Scheduler& scheduler = engine.scheduler();
                  done(scheduler.running_count() + scheduler.waiting_count());
                });
              },
          .is_answering = [http] { return http != nullptr && http->is_answering(); },
          .is_writing = [http] { return http != nullptr && http->is_writing(); },
          .is_broker_disconnected = [&broker] { return broker.is_disconnected().load(); },
          .notify_broker =
              [&broker] {
                const wire::WorkerDraining draining;
                broker.link().notify(std::string(draining.kMethod), {.body = draining.to_json()});
              },
          .when_usage_reported =
              [&broker](std::function<void()> done) {
                broker.link().when_usage_reported(std::move(done));
              }};
}

}  // namespace leasehold
