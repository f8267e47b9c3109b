#include "worker/program/worker_signals.hpp"

#include <signal.h>
#include <spdlog/spdlog.h>

#include <utility>

#include "common/log.hpp"

namespace leasehold {

WorkerSignals::WorkerSignals(boost::asio::io_context& io)
    : stop_signals_(io, SIGTERM, SIGINT),
      reload_signal_(io, SIGHUP),
      stop_([](int signal) { exit_at_once(128 + signal); }) {
  await_stop();
}

void WorkerSignals::on_stop(std::function<void(int signal)> stop) {
  stop_ = std::move(stop);
}

/// Asio queues the signals that arrive while nothing waits for them.
void WorkerSignals::on_reload(std::function<void()> reload) {
  reload_ = std::move(reload);
  await_reload();
}

void WorkerSignals::await_stop() {
  stop_signals_.async_wait([this](const boost::system::error_code& error, int signal) {
    if (error) return;
    spdlog::info("stopping signal={}", signal);
    stop_(signal);
    await_stop();
  });
}

void WorkerSignals::await_reload() {
  reload_signal_.async_wait([this](const boost::system::error_code& error, int) {
    if (error) return;
    reload_();
    await_reload();
  });
}

}  // namespace leasehold
