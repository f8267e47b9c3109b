#include "tests/checks/bench/control_bench.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "common/machine/text_file.hpp"
#include "common/random.hpp"
#include "ipc/control/transport/client.hpp"
#include "tests/checks/bench/figures.hpp"
#include "tests/checks/bench/holders.hpp"
#include "tests/checks/bench/light_worker.hpp"
#include "tests/checks/bench/operator_commands.hpp"
#include "tests/checks/bench/revoke_bench.hpp"
#include "tests/checks/bench/thread_time.hpp"

namespace leasehold::bench {
namespace {

using Json = nlohmann::json;

constexpr const char* kControlTenant = "bench";
constexpr std::uint64_t kExtentBytes = 2 << 20;
constexpr std::uint32_t kInFlight = 64;
constexpr std::uint32_t kQueries = 2'000;
constexpr std::size_t kMaxStatusBytes = 1 << 16;

SystemConfig with_room_for(const std::string& bin_dir, std::uint32_t leases) {
  const std::string extents = std::to_string(leases);
  return {.bin_dir = bin_dir,
          .capacity = std::to_string(leases * kExtentBytes),
          .broker_options = {"--slots", extents, "--max-extents", extents, "--log-level", "warn"},
          .journal = true};
}

HolderConfig holder_of(System& system, std::uint32_t count) {
  return {.broker_socket = system.broker_socket(),
          .tenant = kControlTenant,
          .count = count,
          .in_flight = std::min(count, kInFlight)};
}

/// Revokes leases one by one and waits for each.
Result<void> revoke_and_wait(System& system, std::uint32_t rounds, const std::string& name,
                             Samples& samples) {
  OperatorCommands commands = TRY(OperatorCommands::connect(system.broker_socket()));
  return hold_leases(holder_of(system, rounds), [&](const auto& leases) -> Result<void> {
    for (const LeaseId lease : leases) {
      const TimePoint begin = SystemClock().now();
      (void)TRY(commands.run(brokerctl::Revoke{
          .message = {.lease = lease, .request_id = {mint_request_id()}}, .wait = true}));
      samples[name].push_back(ms_of(SystemClock().now() - begin));
      samples["calls"].push_back(commands.calls());
    }
    return {};
  });
}

Result<Json> measure_wait(const ControlBenchConfig& config) {
  const auto system =
      TRY(System::start(with_room_for(config.bin_dir, config.leases + 2 * config.rounds)));
  TRY(system->admit(kControlTenant));
  const auto worker = TRY(LightWorker::attach(system->broker_socket()));
  Samples samples;
  TRY(revoke_and_wait(*system, config.rounds, "alone_ms", samples));
  const auto beside = [&](const auto&) {
    return revoke_and_wait(*system, config.rounds, "beside_ms", samples);
  };
  TRY(hold_leases(holder_of(*system, config.leases), beside));
  Json report;
  const FigureRow rows[] = {{"calls", Statistic::Median},
                            {"alone_ms", Statistic::Median},
                            {"beside_ms", Statistic::Median},
                            {"beside_to_alone", Statistic::Median, "beside_ms", "alone_ms"}};
  add_figures(report, samples, rows);
  return report;
}

/// Memory of the process that is present, in bytes.
Result<double> resident_bytes(pid_t process) {
  constexpr std::string_view kField = "VmRSS:";
  const std::string path = "/proc/" + std::to_string(process) + "/status";
  const std::string status = TRY(read_text_file(path, kMaxStatusBytes));
  const std::size_t at = status.find_first_of("0123456789", status.find(kField));
  if (at == std::string::npos) return fail(Errc::MalformedMessage, path + " has no VmRSS");
  std::uint64_t kib = 0;
  std::from_chars(status.data() + at, status.data() + status.size(), kib);
  return static_cast<double>(kib << 10);
}

/// Memory of extents that has pages, as `brokerctl status` shows it.
Result<double> touched_bytes(System& system) {
  control::Client client = TRY(control::Client::connect(system.broker_socket()));
  return TRY(client.call("status", {})).body.value("touched_bytes", 0.0);
}

Result<Json> measure_idle(const ControlBenchConfig& config) {
  SystemConfig system_config = with_room_for(config.bin_dir, config.leases + 64);
  system_config.model_path = config.model_path;
  system_config.threads = 1;
  const auto system = TRY(System::start(system_config));
  TRY(system->admit(kControlTenant));
  // The first leases make what all leases share.
  const auto nothing = [](const auto&) { return Result<void>{}; };
  TRY(hold_leases(holder_of(*system, kInFlight), nothing));
  const double before = TRY(resident_bytes(system->worker_pid()));
  const double touched_before = TRY(touched_bytes(*system));
  Json report;
  const auto count = [&](const auto&) -> Result<void> {
    const double touched = TRY(touched_bytes(*system)) - touched_before;
    report["worker_bytes"] = (TRY(resident_bytes(system->worker_pid())) - before) / config.leases;
    report["touched_bytes"] = touched / config.leases;
    return {};
  };
  TRY(hold_leases(holder_of(*system, config.leases), count));
  return report;
}

Result<Json> measure_mass(const ControlBenchConfig& config) {
  const Samples samples = TRY(measure_mass_revocation(config.bin_dir, config.mass_leases));
  Json report = figures_of(samples, Statistic::Median);
  report["free_us"] = 1e3 * figure_of(samples, "all_free_ms") / config.mass_leases;
  return report;
}

/// CPU time of the broker for one call that only reads a lease.
Result<double> query_cpu_us(const ControlBenchConfig& config) {
  const auto system = TRY(System::start(with_room_for(config.bin_dir, 1)));
  TRY(system->admit(kControlTenant));
  const auto worker = TRY(LightWorker::attach(system->broker_socket()));
  control::Client client = TRY(control::Client::connect(system->broker_socket()));
  double used_ns = 0;
  const auto ask = [&](const auto& leases) -> Result<void> {
    const wire::LeaseQuery query{.lease = leases.front()};
    const double before = process_time_ns(system->broker_pid());
    for (std::uint32_t i = 0; i < kQueries; ++i)
      TRY(client.call(std::string(query.kMethod), {.body = query.to_json(), .fds = {}}));
    used_ns = process_time_ns(system->broker_pid()) - before;
    return {};
  };
  TRY(hold_leases(holder_of(*system, 1), ask));
  return used_ns / 1e3 / kQueries;
}

Result<Json> measure_cycles(const ControlBenchConfig& config) {
  Json report = TRY(measure_cycle_rate(config.bin_dir, config.cycles));
  report["query_cpu_us"] = TRY(query_cpu_us(config));
  return report;
}

}  // namespace

Result<Json> measure_control(const ControlBenchConfig& config) {
  Json report;
  report["wait"] = TRY(measure_wait(config));
  report["idle"] = TRY(measure_idle(config));
  report["mass"] = TRY(measure_mass(config));
  report["cycles"] = TRY(measure_cycles(config));
  return Json{{"control", std::move(report)}};
}

}  // namespace leasehold::bench
