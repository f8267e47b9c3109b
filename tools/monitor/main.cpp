/// leasehold-monitor: serves the metrics of a broker and a page about it over HTTP, as a user that
/// may only query it.
#include <spdlog/spdlog.h>

#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <optional>

#include "common/machine/run_server.hpp"
#include "common/machine/service_manager.hpp"
#include "ipc/http/page_server.hpp"
#include "tools/monitor/broker_reader.hpp"
#include "tools/monitor/options.hpp"
#include "tools/monitor/pages.hpp"

namespace {

using namespace leasehold;

Result<void> run(const monitor::Options& options) {
  const SystemClock clock;
  monitor::BrokerReader broker(options.broker_socket, clock);
  boost::asio::io_context io;
  std::vector<http::Page> pages;
  monitor::WorkerReader workers(options.worker_metrics, clock);
  std::optional<monitor::CellReader> cell;
  if (options.cell) cell.emplace(*options.cell, clock);
  monitor::CellReader* const shown = cell ? &*cell : nullptr;
  if (options.page) pages = monitor::pages_of(broker, workers, shown, clock);
  pages.push_back(monitor::metrics_page(broker, shown));
  const auto server =
      TRY(http::PageServer::create(io, options.listen, std::move(pages), options.hosts));
  boost::asio::signal_set signals(io, SIGTERM, SIGINT);
  signals.async_wait([&](const boost::system::error_code&, int) { io.stop(); });
  server->serve();
  spdlog::info("monitor ready address={} broker={}", server->listens_on(), options.broker_socket);
  notify_service_manager("READY=1\nSTATUS=Serving " + server->listens_on());
  io.run();
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const auto parsed = monitor::parse_options(argc, argv);
  if (const int* code = std::get_if<int>(&parsed)) return *code;
  const auto& options = std::get<monitor::Options>(parsed);
  return run_server({.name = "leasehold-monitor",
                     .log_level = options.log_level,
                     .memory_advice = "free memory and start it again"},
                    [&] { return run(options); });
}
