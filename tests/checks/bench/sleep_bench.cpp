#include "tests/checks/bench/sleep_bench.hpp"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "common/machine/text_file.hpp"
#include "tests/checks/bench/figures.hpp"
#include "tests/checks/bench/recover_bench.hpp"
#include "tests/checks/bench/system.hpp"

namespace leasehold::bench {
namespace {

constexpr const char* kWorker = "bench";
constexpr std::size_t kAttached = 2, kBound = 3;  // in kStartStages
constexpr std::size_t kMostLogBytes = 16 << 20;
constexpr auto kSleepTimeout = std::chrono::seconds(60);

double elapsed_ms(TimePoint begin) {
  return std::chrono::duration<double, std::milli>(SystemClock().now() - begin).count();
}

/// Polls until `holds`, and returns the time since `begin`.
Result<double> poll_until(TimePoint begin, const char* what,
                          const std::function<Result<bool>()>& holds) {
  while (!TRY(holds())) {
    if (SystemClock().now() - begin > kSleepTimeout) return fail(Errc::TimedOut, what);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return elapsed_ms(begin);
}

Result<double> load_ms(const System& system) {
  const std::string log = TRY(read_text_file(system.worker_log_path(), kMostLogBytes));
  const StartTimes times = TRY(last_start(log));
  return static_cast<double>(times[kBound] - times[kAttached]) / 1e3;
}

/// The largest t_reuse of the engine leases that the sleep revoked; nothing while one is not free.
Result<std::optional<double>> reuse_ms(System& system) {
  double largest = 0;
  for (const wire::LeaseView& lease : TRY(system.broker().leases())) {
    if (lease.scope != wire::LeaseScope::Engine) continue;
    if (lease.state == LeaseState::Live || lease.clocks.reuse_ns < 0) return std::nullopt;
    if (lease.reason == RevokeReason::WorkerAsleep)
      largest = std::max(largest, static_cast<double>(lease.clocks.reuse_ns) / 1e6);
  }
  return largest;
}

Result<void> fall_asleep(System& system, Samples& samples) {
  const TimePoint begin = SystemClock().now();
  TRY(system.broker().command(wire::WorkerSleep{.worker = kWorker}));
  std::optional<double> reuse;
  const auto is_free = [&]() -> Result<bool> {
    reuse = TRY(reuse_ms(system));
    return reuse.has_value();
  };
  const double free_ms = TRY(poll_until(begin, "the weights are not free after a sleep", is_free));
  samples["free_ms"].push_back(free_ms);
  samples["reuse_ms"].push_back(*reuse);
  samples["free_after_reuse_ms"].push_back(free_ms - *reuse);
  return {};
}

Result<void> wake_up(System& system, Samples& samples) {
  const auto is_awake = [&system]() -> Result<bool> {
    const auto workers = TRY(system.broker().workers());
    return std::ranges::any_of(workers, [](const wire::WorkerView& worker) {
      return worker.state == "ready" && worker.drain == "serving";
    });
  };
  system.cache_model();
  const TimePoint begin = SystemClock().now();
  TRY(system.broker().command(wire::WorkerWake{.worker = kWorker}));
  samples["wake_ms"].push_back(TRY(poll_until(begin, "the worker is not awake", is_awake)));
  return {};
}

/// The worker sleeps before it is killed, so that the next one has to load its weights.
Result<void> measure_one_sleep(System& system, Samples& samples) {
  TRY(fall_asleep(system, samples));
  TRY(wake_up(system, samples));
  Samples unused;
  TRY(fall_asleep(system, unused));
  system.kill_worker();
  TRY(system.start_worker());
  samples["load_ms"].push_back(TRY(load_ms(system)));
  samples["wake_to_load"].push_back(samples["wake_ms"].back() / samples["load_ms"].back());
  return {};
}

}  // namespace

Result<nlohmann::json> measure_sleep(const SleepBenchConfig& config) {
  const auto system = TRY(
      System::start({.bin_dir = config.bin_dir, .model_path = config.model_path, .threads = 0}));
  Samples samples;
  for (std::uint32_t round = 0; round < config.rounds; ++round)
    TRY(measure_one_sleep(*system, samples));
  return nlohmann::json{{"sleep", figures_of(samples, Statistic::Median)}};
}

}  // namespace leasehold::bench
