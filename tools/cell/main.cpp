/// leasehold-cell: joins this host to a cell of hosts on etcd.
#include <spdlog/spdlog.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>

#include "common/fault_point.hpp"
#include "common/machine/run_server.hpp"
#include "common/machine/service_manager.hpp"
#include "tools/cell/agent.hpp"
#include "tools/cell/options.hpp"

namespace {

using namespace leasehold;

/// The membership outlives the process: a restarted agent goes on in it.
Result<void> run(cell::Options options) {
  const SystemClock clock;
  boost::asio::io_context io;
  const auto agent = TRY(cell::Agent::create(io, clock, std::move(options)));
  boost::asio::signal_set signals(io, SIGTERM, SIGINT);
  signals.async_wait([&](const boost::system::error_code&, int) { io.stop(); });
  TRY(agent->start());
  // Not when it has joined: etcd may be away for longer than a service manager waits for a start.
  notify_service_manager("READY=1\nSTATUS=Joining the cell");
  io.run();
  notify_service_manager("STOPPING=1");
  spdlog::info("agent stops");
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  auto parsed = cell::parse_options(argc, argv);
  if (const int* code = std::get_if<int>(&parsed)) return *code;
  auto& options = std::get<cell::Options>(parsed);
  const std::string log_level = options.log_level;
  return run_server({.name = "leasehold-cell",
                     .log_level = log_level,
                     .memory_advice = "free memory and start it again"},
                    [&]() -> Result<void> {
                      TRY(arm_fault_points_from_environment());
                      return run(std::move(options));
                    });
}
