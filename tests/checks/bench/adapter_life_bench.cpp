#include "tests/checks/bench/adapter_life_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <thread>

#include "tests/checks/bench/adapter_files.hpp"
#include "tests/checks/bench/clocks.hpp"
#include "tests/checks/bench/figures.hpp"
#include "tests/checks/bench/poll_cost.hpp"
#include "tests/checks/bench/report.hpp"
#include "tests/checks/bench/tenant_pool.hpp"
#include "tests/checks/bench/thread_time.hpp"

namespace leasehold::bench {
namespace {

using Json = nlohmann::json;

constexpr const char* kLoadingWorker = "bench";
constexpr Duration kLoadTimeout = std::chrono::minutes(2);
constexpr Duration kLoadPollInterval = std::chrono::milliseconds(2);
constexpr std::uint32_t kBesideStreams = 8;
constexpr std::uint32_t kBesideTokens = 512;
constexpr std::uint32_t kInTurn = 16;
constexpr std::uint32_t kLoadedInTurn = 8;
constexpr std::uint64_t kLeastExtentBytes = std::uint64_t{2} << 20;
constexpr std::uint32_t kTurns = 2;  // measured, after one in which memory is still free
constexpr std::uint32_t kFlipsPerRound = 20;

std::uint32_t threads_of_loads() {
  return std::max(2u, std::thread::hardware_concurrency()) - 1;
}

SystemConfig load_system_config(const AdapterBenchConfig& config, const AdapterFiles& files) {
  return {.bin_dir = config.bin_dir,
          .model_path = config.model_path,
          .threads = threads_of_loads(),
          .broker_options = {},
          .worker_options = {"--arithmetic", "int8", "--adapters", files.directory()}};
}

/// Polls until `holds`. Errors: its own; TimedOut.
Result<void> await_until(const char* what, const std::function<Result<bool>()>& holds) {
  const SystemClock clock;
  for (const TimePoint end = clock.now() + kLoadTimeout; clock.now() < end;) {
    if (TRY(holds())) return {};
    std::this_thread::sleep_for(kLoadPollInterval);
  }
  return fail(Errc::TimedOut, what);
}

/// Loads the adapter, and unloads it until its memory is free. Returns the time of the load.
Result<double> load_ms(System& system, std::uint32_t number) {
  const SystemClock clock;
  const AdapterName adapter{adapter_name(number)};
  const TimePoint begin = clock.now();
  TRY(system.broker().command(wire::AdapterLoad{.adapter = adapter, .worker = kLoadingWorker}));
  const double took_ms = ms_of(clock.now() - begin);
  TRY(system.broker().command(wire::AdapterUnload{.adapter = adapter, .worker = kLoadingWorker}));
  const auto are_free = [&system]() -> Result<bool> {
    const auto leases = TRY(system.broker().leases());
    return std::ranges::none_of(leases, [](const wire::LeaseView& lease) {
      return lease.scope == wire::LeaseScope::Adapter && lease.clocks.reuse_ns < 0;
    });
  };
  TRY(await_until("an unloaded adapter keeps its memory", are_free));
  return took_ms;
}

/// Loads at least `rounds` times, and for at least `seconds`.
Result<void> add_loads(System& system, std::uint32_t rounds, std::uint32_t seconds,
                       std::vector<double>& samples) {
  const SystemClock clock;
  const TimePoint end = clock.now() + std::chrono::seconds(seconds);
  while (samples.size() < rounds || clock.now() < end) samples.push_back(TRY(load_ms(system, 0)));
  return {};
}

/// One client's requests of one token, each under the next adapter.
Result<void> add_turns(System& system, Samples& samples) {
  TenantPool pool({.broker_socket = system.broker_socket(),
                   .max_tokens = 1,
                   .adapter = [](std::uint32_t, std::uint64_t request) {
                     return adapter_name(static_cast<std::uint32_t>(request % kInTurn));
                   }});
  TRY(pool.await_tokens((kTurns + 1) * kInTurn, kLoadTimeout));
  std::vector<double> seconds = pool.take_first_tokens_s();
  for (const double each : std::span(seconds).subspan(kInTurn, kTurns * kInTurn))
    samples["first_token_ms"].push_back(each * 1e3);
  return {};
}

/// The mean over many tokens: a busy client reads several at once.
Result<double> mean_step_ms(System& system) {
  const TenantPool pool({.broker_socket = system.broker_socket(),
                         .max_tokens = kBesideTokens,
                         .adapter = [](std::uint32_t, std::uint64_t) { return adapter_name(0); }});
  TRY(pool.await_tokens(1, kLoadTimeout));
  const SystemClock clock;
  const TimePoint begin = clock.now();
  const std::uint64_t before = pool.tokens();
  TRY(pool.await_tokens(before + kBesideTokens / 4, kLoadTimeout));
  return ms_of(clock.now() - begin) / static_cast<double>(pool.tokens() - before);
}

}  // namespace

Result<Json> measure_adapter_loads(const AdapterBenchConfig& config) {
  const AdapterFiles files = TRY(AdapterFiles::create(config.model_path, 1));
  const auto system = TRY(System::start(load_system_config(config, files)));
  TRY(system->admit_pool(kBesideStreams));
  TRY(register_adapter(*system, 0, 0));
  Samples samples;
  TRY(add_loads(*system, config.rounds, 0, samples["idle_ms"]));
  TenantPool streams({.broker_socket = system->broker_socket(),
                      .clients = kBesideStreams,
                      .max_tokens = kBesideTokens});
  TRY(streams.await_running(kBesideStreams, kLoadTimeout));
  (void)streams.take_gaps_us();
  std::this_thread::sleep_for(std::chrono::seconds(config.calm_seconds));
  samples["gap_us.calm"] = streams.take_gaps_us();
  TRY(add_loads(*system, config.rounds, config.calm_seconds, samples["beside_ms"]));
  samples["gap_us.loading"] = streams.take_gaps_us();
  const FigureRow rows[] = {{"idle_ms", Statistic::Median},
                            {"beside_ms", Statistic::Median},
                            {"gap_us.calm"},
                            {"gap_us.loading"},
                            {"gap_us.p99_ratio", Statistic::P99, "gap_us.loading", "gap_us.calm"}};
  Json json;
  add_figures(json, samples, rows);
  return json;
}

Result<Json> measure_adapter_turns(const AdapterBenchConfig& config) {
  const AdapterFiles files = TRY(AdapterFiles::create(config.model_path, kInTurn));
  SystemConfig system_options = load_system_config(config, files);
  // In whole extents, and as much as one adapter for KV memory, so that no ninth one fits.
  const std::uint64_t each = (files.bytes_each() / kLeastExtentBytes + 1) * kLeastExtentBytes;
  system_options.capacity = std::to_string((kLoadedInTurn + 1) * each);
  const auto system = TRY(System::start(system_options));
  TRY(system->admit_pool(1));
  for (std::uint32_t i = 0; i < kInTurn; ++i) TRY(register_adapter(*system, i, 0));
  Samples samples;
  TRY(add_loads(*system, config.rounds, 0, samples["load_ms"]));
  samples["step_ms"].push_back(TRY(mean_step_ms(*system)));
  TRY(add_turns(*system, samples));
  Json json = figures_of(samples, Statistic::Median);
  json["steps_beyond_load"] =
      (figure_of(samples, "first_token_ms") - figure_of(samples, "load_ms")) /
      figure_of(samples, "step_ms");
  return json;
}

Result<Json> measure_adapter_clocks(const AdapterBenchConfig& config) {
  const AdapterFiles files = TRY(AdapterFiles::create(config.model_path, kBesideStreams));
  const ClockSetup setup{.model = "adapters",
                         .model_path = config.model_path,
                         .bin_dir = config.bin_dir,
                         .tenants = kBesideStreams,
                         .threads = threads_of_loads(),
                         .samples = kFlipsPerRound * config.rounds,
                         .worker_options = {"--arithmetic", "int8"},
                         .adapters = &files};
  const std::vector<ClockRun> runs = {TRY(measure_clocks(setup))};
  Json json = clocks_json(runs, setup.threads);
  json.erase("runs");
  const StepCost step = TRY(measure_step(config.model_path, kDecodeSteps));
  json["mean_unit_us"] = step.step_us / step.units;
  return json;
}

}  // namespace leasehold::bench
