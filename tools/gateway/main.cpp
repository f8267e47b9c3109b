/// leasehold-gateway: serves many workers under one address, and continues the texts of those that
/// die.
#include <spdlog/spdlog.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <functional>
#include <optional>

#include "common/fault_point.hpp"
#include "common/log.hpp"
#include "common/machine/run_server.hpp"
#include "common/machine/service_manager.hpp"
#include "ipc/http/http_await.hpp"
#include "tools/gateway/gateway.hpp"
#include "tools/gateway/options.hpp"

namespace {

using namespace leasehold;
namespace asio = boost::asio;

using ReadOptions = std::function<std::optional<gateway::Options>()>;

constexpr auto kDrainInterval = std::chrono::milliseconds(20);
constexpr auto kCutTimeout = std::chrono::seconds(1);  // for clients to take the error

/// A file or certificate with an error changes nothing: the hosts stay those of before.
void reload(gateway::Gateway& gateway, gateway::Options& running, const ReadOptions& read) {
  const auto wanted = read();
  if (!wanted) {
    return spdlog::error(
        "configuration not reloaded; the hosts stay as they are; correct it and reload again");
  }
  if (const auto reloaded = gateway.reload(wanted->hosts); !reloaded) {
    return spdlog::error(
        "configuration not reloaded; the hosts stay as they are; correct it and reload again "
        "code={} reason=\"{}\"",
        name(reloaded.error().code), reloaded.error().detail);
  }
  const ConfigReload changes = running.cell
                                   ? reload_config(running.config, wanted->config, {"log-level"})
                                   : reload_config(running.config, wanted->config,
                                                   {"log-level", "hosts", "plaintext-hosts"});
  set_log_level(wanted->log_level);
  log_reload(changes);
  if (running.certificate)
    spdlog::info("certificate reloaded file={}", running.certificate->certificate);
}

/// Waits until every request is answered, or for this time.
asio::awaitable<void> await_answers(asio::io_context& io, const gateway::Gateway& gateway,
                                    std::chrono::milliseconds timeout) {
  asio::steady_timer timer(io);
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (gateway.answering() > 0 && std::chrono::steady_clock::now() < deadline) {
    timer.expires_after(kDrainInterval);
    co_await timer.async_wait(http::kAwait);
  }
}

/// Ends the program once every request is answered, or at the second signal. Requests that outlast
/// the drain timeout end with an error.
asio::awaitable<void> drain(asio::io_context& io, gateway::Gateway& gateway,
                            std::chrono::milliseconds timeout) {
  notify_service_manager("STOPPING=1");
  spdlog::info("gateway drains requests={} timeout_ms={}", gateway.answering(), timeout.count());
  gateway.drain();
  co_await await_answers(io, gateway, timeout);
  const std::uint32_t cut = gateway.answering();
  gateway.cut();
  co_await await_answers(io, gateway, kCutTimeout);
  spdlog::info("gateway stops requests_cut={}", cut);
  io.stop();
}

asio::awaitable<void> obey_signals(asio::io_context& io, gateway::Gateway& gateway,
                                   gateway::Options& options, ReadOptions read) {
  asio::signal_set signals(io, SIGTERM, SIGINT, SIGHUP);
  for (bool is_draining = false;;) {
    const auto [error, number] = co_await signals.async_wait(http::kAwait);
    if (error) co_return;
    if (number == SIGHUP) {
      reload(gateway, options, read);
    } else if (is_draining) {
      io.stop();
    } else {
      is_draining = true;
      asio::co_spawn(io, drain(io, gateway, options.drain_timeout), asio::detached);
    }
  }
}

Result<void> run(gateway::Options options, ReadOptions read) {
  const SystemClock clock;
  asio::io_context io;
  const auto gateway = TRY(gateway::Gateway::create(io, clock, options));
  gateway->serve();
  asio::co_spawn(io, obey_signals(io, *gateway, options, std::move(read)), asio::detached);
  if (const std::string metrics = gateway->metrics_on(); !metrics.empty())
    spdlog::info("metrics ready address={}", metrics);
  spdlog::info("gateway ready address={} hosts={} tls={}", gateway->listens_on(),
               options.hosts.size(), options.certificate.has_value());
  notify_service_manager("READY=1\nSTATUS=Serving " + gateway->listens_on());
  io.run();
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  auto parsed = gateway::parse_options(argc, argv);
  if (const int* code = std::get_if<int>(&parsed)) return *code;
  auto& options = std::get<gateway::Options>(parsed);
  const ReadOptions read = [=]() -> std::optional<gateway::Options> {
    auto again = gateway::parse_options(argc, argv);
    if (auto* found = std::get_if<gateway::Options>(&again)) return std::move(*found);
    return std::nullopt;
  };
  const std::string log_level = options.log_level;
  return run_server({.name = "leasehold-gateway",
                     .log_level = log_level,
                     .memory_advice = "free memory and start it again"},
                    [&]() -> Result<void> {
                      TRY(arm_fault_points_from_environment());
                      return run(std::move(options), read);
                    });
}
