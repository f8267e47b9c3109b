#include "broker/server/server_signals.hpp"

#include <spdlog/spdlog.h>
#include <boost/asio/post.hpp>

#include <utility>

#include "broker/server/views/views.hpp"
#include "common/log.hpp"
#include "common/machine/service_manager.hpp"

namespace leasehold {
namespace {

/// How long a stopping broker waits for all leases to be fenced.
constexpr auto kStopTimeout = std::chrono::milliseconds(1500);

}  // namespace

ServerSignals::ServerSignals(Dependencies dependencies, ReloadOptions reload, ConfigValues config)
    : dependencies_(dependencies),
      reload_(std::move(reload)),
      config_(std::move(config)),
      signals_(dependencies.io, SIGTERM, SIGINT, SIGHUP),
      stop_timer_(dependencies.io) {}

void ServerSignals::watch() {
  signals_.async_wait([this](const boost::system::error_code& error, int signal_number) {
    if (error) return;
    if (signal_number != SIGHUP) return stop(signal_number);
    reload_configuration();
    watch();
  });
}

/// Reads the configuration again. If the file has an error, nothing changes. Leases and workers are
/// not affected.
void ServerSignals::reload_configuration() {
  const auto read = reload_();
  const auto* wanted = std::get_if<BrokerOptions>(&read);
  if (wanted == nullptr)
    return spdlog::error("configuration not reloaded; correct it and reload again");
  const ConfigReload reload =
      reload_config(config_, wanted->config,
                    {"log-level", "reclaim-grace-ms", "adopt-grace-ms", "max-engine-leases",
                     "max-shared-blocks", "max-shared-adapter-bytes"});
  set_log_level(wanted->log_level);
  dependencies_.loop.post(
      ConfigReloaded{.reclaim_grace = wanted->reclaim_grace,
                     .adopt_grace = wanted->adopt_grace,
                     .max_engine_leases = wanted->max_engine_leases,
                     .max_shared_blocks = wanted->max_shared_blocks,
                     .max_shared_adapter_bytes = wanted->max_shared_adapter_bytes});
  log_reload(reload);
}

void ServerSignals::stop(int signal_number) {
  spdlog::info("broker is stopping and revokes all leases signal={}", signal_number);
  notify_service_manager("STOPPING=1");
  dependencies_.connections.stop_accepting();
  stop_timer_.expires_after(kStopTimeout);
  stop_timer_.async_wait([this](const boost::system::error_code&) {
    spdlog::warn("stopping before all leases are fenced open={}",
                 leases_not_fenced(dependencies_.state));
    dependencies_.io.stop();
  });
  dependencies_.loop.post(Shutdown{});
}

void ServerSignals::stop_if_fenced() {
  const State& state = dependencies_.state;
  if (!state.stopping || leases_not_fenced(state) > 0) return;
  // Handlers that wait write the records of the revocations.
  boost::asio::post(dependencies_.io, [&io = dependencies_.io] { io.stop(); });
}

}  // namespace leasehold
