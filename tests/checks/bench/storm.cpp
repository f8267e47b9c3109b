#include <algorithm>
#include <iterator>
#include <thread>

#include "common/clock.hpp"
#include "tests/checks/bench/holders.hpp"
#include "tests/checks/bench/revoke_bench.hpp"
#include "tests/checks/bench/tenant_pool.hpp"
#include "tests/checks/bench/thread_time.hpp"

namespace leasehold::bench {
namespace {

constexpr Duration kWindow = std::chrono::seconds(1);
constexpr Duration kSettle = std::chrono::milliseconds(200);
constexpr Duration kRunTimeout = std::chrono::seconds(60);
constexpr std::uint32_t kSurvivors = 8;
constexpr std::uint32_t kRevocations = 50;  ///< Revocations per window.
constexpr const char* kVictim = "victim";

void add_gaps(TenantPool& tenant_pool, std::vector<double>& gaps_us) {
  std::ranges::copy(tenant_pool.take_gaps_us(), std::back_inserter(gaps_us));
}

/// Sleeps until an absolute time, so that late calls do not lower the rate.
void sleep_until(TimePoint moment) {
  const Duration left = moment - SystemClock().now();
  if (left > Duration::zero()) std::this_thread::sleep_for(left);
}

/// Spreads the revocations over one window. Returns the time that they took.
Result<Duration> revoke_steadily(System& system, const std::vector<LeaseId>& leases) {
  const TimePoint begin = SystemClock().now();
  const Duration pace = kWindow / static_cast<int>(leases.size());
  for (std::size_t i = 0; i < leases.size(); ++i) {
    sleep_until(begin + pace * static_cast<int>(i));
    TRY(system.revoke(leases[i]));
  }
  sleep_until(begin + kWindow);
  return SystemClock().now() - begin;
}

}  // namespace

Result<Samples> measure_storm(const SystemConfig& config, std::uint32_t pairs) {
  auto system = TRY(System::start(config));
  TRY(system->admit_pool(kSurvivors));
  TRY(system->admit(kVictim));
  TenantPool tenant_pool({.broker_socket = system->broker_socket(), .clients = kSurvivors});
  TRY(tenant_pool.await_running(kSurvivors, kRunTimeout));
  Samples samples;
  Duration stormy{};
  const auto one_pair = [&](const std::vector<LeaseId>& leases) -> Result<void> {
    std::this_thread::sleep_for(kSettle);
    (void)tenant_pool.take_gaps_us();
    std::this_thread::sleep_for(kWindow);
    add_gaps(tenant_pool, samples["calm_inter_token_us"]);
    stormy += TRY(revoke_steadily(*system, leases));
    add_gaps(tenant_pool, samples["storm_inter_token_us"]);
    return {};
  };
  for (std::uint32_t pair = 0; pair < pairs; ++pair) {
    TRY(hold_leases({.broker_socket = system->broker_socket(),
                     .tenant = kVictim,
                     .count = kRevocations,
                     .in_flight = 4},
                    one_pair));
  }
  samples["revocations_per_s"] = {kRevocations * pairs / (ms_of(stormy) / 1e3)};
  return samples;
}

nlohmann::json storm_json(const Samples& samples) {
  const FigureRow rows[] = {
      {"calm_inter_token_us"},
      {"storm_inter_token_us"},
      {"revocations_per_s", Statistic::Median},
      {"p50_ratio", Statistic::Median, "storm_inter_token_us", "calm_inter_token_us"},
      {"p99_ratio", Statistic::P99, "storm_inter_token_us", "calm_inter_token_us"}};
  nlohmann::json report;
  add_figures(report, samples, rows);
  return report;
}

}  // namespace leasehold::bench
