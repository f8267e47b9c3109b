#include "tools/monitor/options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "common/cli/command_line.hpp"
#include "common/cli/config_file.hpp"
#include "common/cli/version.hpp"

namespace leasehold::monitor {

namespace {

/// The address of a worker's metrics, which has a port of its own. Errors: BadRequest.
Result<http::Address> parse_worker(const std::string& text) {
  auto worker = TRY(http::Address::parse(text, true));
  if (!worker.unix_path.empty() || worker.port != 0) return worker;
  return fail(Errc::BadRequest,
              fmt::format("'{}' has port 0, which no worker has; give the port that its log names "
                          "after \"metrics ready\"",
                          text));
}

}  // namespace

std::variant<Options, int> parse_options(int argc, char** argv) {
  Options options;
  std::string listen = "127.0.0.1:8081";
  bool any_address = false;
  bool no_page = false;
  std::vector<std::string> worker_metrics;
  std::string cell_file;
  CLI::App app{"Show the metrics and the state of a broker, without a right to change anything",
               "leasehold-monitor"};
  app.set_version_flag("--version", "leasehold-monitor " + std::string(version()));
  add_config_options(app);
  app.add_option("--broker", options.broker_socket, "Unix socket of leasehold-broker")
      ->required()
      ->check(check_socket_path);
  app.add_option(
         "--listen", listen,
         "Serve /metrics and the page here, without a key: an address or the path of a Unix "
         "socket")
      ->capture_default_str();
  app.add_flag("--http-any-address", any_address,
               "Allow --listen on an address that other machines reach, without encryption");
  app.add_option("--http-host", options.hosts.names,
                 "Answer requests for this name too, e.g. that of a proxy; may be repeated");
  app.add_option("--worker-metrics", worker_metrics,
                 "Show requests and latencies of the worker with this --metrics address on the "
                 "page; may be repeated");
  app.add_option("--cell", cell_file,
                 "Show the hosts of this cell: the path of a cell.toml with etcd, its user and the "
                 "cell")
      ->check(check_file_path);
  app.add_flag("--no-page", no_page, "Serve /metrics alone");
  app.add_option("--log-level", options.log_level, "Least severe level to log")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error"}))
      ->capture_default_str();
  if (const auto ended = parse_command_line(app, argc, argv)) return *ended;
  auto address = http::Address::parse(listen, any_address);
  if (!address) return print_error(app.get_name(), {.text = "--listen: " + address.error().detail});
  for (const std::string& text : worker_metrics) {
    auto worker = parse_worker(text);
    if (!worker)
      return print_error(app.get_name(), {.text = "--worker-metrics: " + worker.error().detail});
    options.worker_metrics.push_back(*std::move(worker));
  }
  if (!cell_file.empty()) {
    auto cell = cell::read_cell_file(cell_file);
    if (!cell) return print_error(app.get_name(), {.text = "--cell: " + cell.error().detail});
    options.cell = *std::move(cell);
  }
  if (const auto ended = finish_config(app)) return *ended;
  options.listen = *std::move(address);
  options.hosts = http::HostRule::at(options.listen, std::move(options.hosts.names));
  options.page = !no_page;
  return options;
}

}  // namespace leasehold::monitor
