#include "worker/program/reload.hpp"

#include <spdlog/spdlog.h>

#include "common/log.hpp"

namespace leasehold {

void reload_configuration(WorkerOptions& running, const ReloadOptions& read, EngineLoop& loop) {
  const auto options = read();
  if (!options) return spdlog::error("configuration not reloaded; correct it and reload again");
  const ConfigReload reload =
      reload_config(running.config, options->config,
                    {"log-level", "drain-timeout-ms", "max-waiting", "max-waiting-per-lease"});
  set_log_level(options->log_level);
  running.drain_timeout = options->drain_timeout;
  loop.post([limits = options->limits](Engine& engine) {
    engine.submissions().set_queue_limits(limits.max_waiting, limits.max_waiting_per_lease);
  });
  log_reload(reload);
}

}  // namespace leasehold
