#include "tests/checks/bench/revoke_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "tests/checks/bench/poll_cost.hpp"
#include "tests/checks/bench/report.hpp"

namespace leasehold::bench {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kGateUnits = 2'000'000;

std::uint32_t cores() {
  return std::max(1u, std::thread::hardware_concurrency());
}

std::uint32_t threads_leaving_a_core() {
  return std::max(1u, cores() - 1);
}

/// Each function runs one measurement and adds its keys to the report.
class Bench {
 public:
  Bench(const RevokeConfig& config, const Progress& progress)
      : config_(config), progress_(progress) {}

  Result<void> clocks() {
    for (const ClockSetup& setup : clock_setups()) {
      progress_(fmt::format("clocks: model {}, {} tenants, {} compute threads, {} flips",
                            setup.model, setup.tenants, setup.threads, setup.samples));
      report.clocks.push_back(TRY(measure_clocks(setup)));
    }
    report.json.update(clocks_json(report.clocks, threads_leaving_a_core()));
    return {};
  }

  Result<void> poll() {
    progress_("poll: the gate in a tight loop, then decode steps");
    Json poll = {{"gate_ns", TRY(measure_gate_ns(kGateUnits))}};
    const double gate_ns = poll["gate_ns"];
    const auto add = [&](const std::string& model, const std::string& path) -> Result<void> {
      const StepCost step = TRY(measure_step(path, kDecodeSteps));
      poll[model] = {{"units_per_step", step.units},
                     {"step_us", step.step_us},
                     {"share_percent", step.units * gate_ns / 10.0 / step.step_us},
                     {"mean_unit_us", step.step_us / step.units}};
      return {};
    };
    TRY(add("demo", config_.demo_model));
    if (!config_.large_model.empty()) TRY(add("shape_0_5b", config_.large_model));
    report.json["poll"] = std::move(poll);
    return {};
  }

  Result<void> storm() {
    progress_("storm: alternating seconds with and without revocations");
    report.json["storm"] = storm_json(TRY(measure_storm({.bin_dir = config_.bin_dir,
                                                         .model_path = config_.demo_model,
                                                         .threads = threads_leaving_a_core()},
                                                        config_.quick ? 2 : 10)));
    return {};
  }

  Result<void> mass() {
    progress_(fmt::format("mass: {} leases by one command", config_.mass_leases));
    const Samples mass = TRY(measure_mass_revocation(config_.bin_dir, config_.mass_leases));
    report.json["mass"] = figures_of(mass, Statistic::Median);
    report.json["mass"].update(
        {{"leases", config_.mass_leases}, {"rounds", mass.begin()->second.size()}});
    return {};
  }

  Result<void> cycles() {
    progress_("cycles: acquire, fence, free");
    report.json["cycles"] =
        TRY(measure_cycle_rate(config_.bin_dir, config_.quick ? 2'000 : 20'000));
    return {};
  }

  Result<void> deaths() {
    report.json["deaths"]["demo"] = TRY(deaths_of("demo", config_.demo_model));
    if (config_.large_model.empty() || config_.quick) return {};
    report.json["deaths"]["shape_0_5b"] = TRY(deaths_of("0.5b", config_.large_model));
    return {};
  }

  RevokeReport report;

 private:
  std::vector<ClockSetup> clock_setups() const {
    struct Shape {
      std::string name, path;
      std::uint32_t samples;
    };
    std::vector<Shape> shapes = {{"demo", config_.demo_model, config_.quick ? 600u : 1000u}};
    if (!config_.large_model.empty()) {
      shapes.push_back({"0.5b", config_.large_model, config_.quick ? 60u : 200u});
    }
    std::set<std::uint32_t> thread_counts = {threads_leaving_a_core()};
    if (!config_.quick) thread_counts.insert(cores());
    std::vector<std::uint32_t> tenants = config_.tenants;
    if (tenants.empty()) tenants = config_.quick ? std::vector{8u} : std::vector{1u, 8u, 64u};
    std::vector<ClockSetup> setups;
    for (const std::uint32_t threads : thread_counts) {
      for (const Shape& shape : shapes) {
        for (const std::uint32_t n : tenants) {
          setups.push_back({.model = shape.name,
                            .model_path = shape.path,
                            .bin_dir = config_.bin_dir,
                            .tenants = n,
                            .threads = threads,
                            .samples = config_.flips > 0 ? config_.flips : shape.samples,
                            .seed = config_.seed + setups.size()});
        }
      }
    }
    return setups;
  }

  Result<Json> deaths_of(const std::string& model, const std::string& path) {
    const SystemConfig config{
        .bin_dir = config_.bin_dir, .model_path = path, .threads = threads_leaving_a_core()};
    struct TimedDeath {
      const char *what, *key;
      Result<Json> (*measure)(const SystemConfig& config);
    };
    constexpr TimedDeath kDeaths[] = {
        {"revoke and rebind of one tenant", "rebind_ms", measure_rebind_ms},
        {"a tenant", "tenant_killed_to_memory_free_ms", measure_tenant_death_ms},
        {"the broker", "broker_killed", measure_broker_death},
        {"the worker", "worker_killed", measure_worker_death},
        {"broker and worker together", "cold_restart", measure_cold_restart}};
    Json json;
    for (const auto& [what, key, measure] : kDeaths) {
      progress_(fmt::format("deaths: model {}, {}", model, what));
      json[key] = TRY(measure(config));
    }
    return json;
  }

  const RevokeConfig& config_;
  const Progress& progress_;
};

}  // namespace

Result<RevokeReport> run_revoke_bench(const RevokeConfig& config, const Progress& progress) {
  Bench bench(config, progress);
  bench.report.json["machine"] = {{"cores", cores()}, {"load_at_start", load_average()}};
  using Measurement = Result<void> (Bench::*)();
  constexpr Measurement kMeasure[] = {&Bench::clocks, &Bench::poll,   &Bench::storm,
                                      &Bench::mass,   &Bench::cycles, &Bench::deaths};
  for (std::size_t i = 0; i < std::size(kMeasure); ++i) {
    if (!config.measurements.contains(kMeasurements[i])) continue;
    if (auto measured = (bench.*kMeasure[i])(); !measured) {
      return fail(measured.error().code,
                  fmt::format("{}: {}", kMeasurements[i], measured.error().detail));
    }
  }
  bench.report.json["machine"]["load_at_end"] = load_average();
  return std::move(bench.report);
}

}  // namespace leasehold::bench
