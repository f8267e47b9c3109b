#include "worker/program/reload.hpp"

#include <spdlog/spdlog.h>

#include "common/log.hpp"

namespace leasehold {

void reload_configuration(WorkerOptions& running, const ReloadOptions& read, EngineLoop& loop) {
  const auto wanted = read();
  if (!wanted) return spdlog::error("configuration not reloaded; correct it and reload again");
  const ConfigReload reload =
      reload_config(running.config, wanted->config,
                    {"log-level", "drain-timeout-ms", "max-waiting", "max-waiting-per-lease"});
  set_log_level(wanted->log_level);
  running.drain_timeout = wanted->drain_timeout;
  loop.post([limits = wanted->limits](Engine& engine) {
    engine.set_queue_limits(limits.max_waiting, limits.max_waiting_per_lease);
  });
  log_reload(reload);
}

}  // namespace leasehold
