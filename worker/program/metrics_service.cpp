#include "worker/program/metrics_service.hpp"

#include <spdlog/spdlog.h>

#include "common/machine/process.hpp"
#include "common/metrics/exposition.hpp"

namespace leasehold {

Result<void> MetricsService::open(const WorkerOptions& options, const OpenedModel& model) {
  if (!options.metrics) return {};
  identity_ = {.worker = options.name, .model = model.config.name};
  const auto make = [this] {
    return http::Answer{.body = page_.read(),
                        .content_type = std::string(metrics::exposition_content_type())};
  };
  server_ =
      TRY(http::PageServer::create(io_.context(), *options.metrics,
                                   {{.path = "/metrics", .make = make}}, options.metrics_hosts));
  TRY(io_.start("metrics"));
  TRY(io_.run([this]() -> Result<void> {
    use_batch_scheduling();
    server_->serve();
    return {};
  }));
  spdlog::info("metrics ready address={}", server_->listens_on());
  return {};
}

}  // namespace leasehold
