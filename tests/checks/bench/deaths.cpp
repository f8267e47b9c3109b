// Measures the time from a SIGKILL until service and revocation work again.
#include <signal.h>

#include <algorithm>
#include <functional>
#include <thread>

#include "common/clock.hpp"
#include "tests/checks/bench/revoke_bench.hpp"
#include "tests/checks/bench/statistics.hpp"
#include "tests/checks/bench/tenant_pool.hpp"
#include "tests/checks/bench/thread_time.hpp"

namespace leasehold::bench {
namespace {

using Json = nlohmann::json;

constexpr Duration kRecoveryTimeout = std::chrono::seconds(120);
constexpr auto kMemoryPollInterval = std::chrono::milliseconds(1);
constexpr std::uint32_t kTenants = 8;
constexpr std::uint32_t kRebinds = 20;
constexpr auto kCalm = std::chrono::milliseconds(500);
/// Tokens per tenant: more than one request has, so that each tenant sees a request end.
constexpr std::uint64_t kTokensAfter = 150;

double ms_since(TimePoint begin) {
  return ms_of(SystemClock().now() - begin);
}

struct Scenario {
  std::unique_ptr<System> system;
  std::unique_ptr<TenantPool> tenant_pool;
};

Result<Scenario> start_scenario(const SystemConfig& config) {
  Scenario scenario{.system = TRY(System::start(config))};
  TRY(scenario.system->admit_pool(kTenants));
  scenario.tenant_pool = std::make_unique<TenantPool>(
      TenantPoolConfig{.broker_socket = scenario.system->broker_socket(), .clients = kTenants});
  TRY(scenario.tenant_pool->await_running(kTenants, kRecoveryTimeout));
  return scenario;
}

/// Restarts the processes with `restart`; the tenants reconnect by themselves.
Result<Json> measure_recovery(Scenario& scenario, TimePoint died,
                              const std::function<Result<void>()>& restart) {
  TRY(restart());
  scenario.tenant_pool->clear_running();  // tokens sent before the death do not count
  Json times;
  TRY(scenario.tenant_pool->await_running(1, kRecoveryTimeout));
  times["to_first_token_ms"] = ms_since(died);
  const auto running = scenario.tenant_pool->running();
  if (running.empty()) return fail(Errc::TimedOut, "no tenant is running after the restart");
  TRY(scenario.system->revoke(running.front().lease));
  if (!scenario.tenant_pool->await_end(running.front().lease, kRecoveryTimeout)) {
    return fail(Errc::TimedOut, "the first revoked tenant got no typed end");
  }
  times["to_first_revoke_ms"] = ms_since(died);
  TRY(scenario.tenant_pool->await_running(kTenants, kRecoveryTimeout));
  times["to_all_tenants_ms"] = ms_since(died);
  return times;
}

double longest_ms(const std::vector<double>& gaps_us) {
  return gaps_us.empty() ? 0 : std::ranges::max(gaps_us) / 1e3;
}

}  // namespace

Result<Json> measure_broker_death(const SystemConfig& config) {
  SystemConfig with_store = config;
  with_store.journal = true;
  with_store.keep_descriptors = true;
  Scenario scenario = TRY(start_scenario(with_store));
  TenantPool& tenant_pool = *scenario.tenant_pool;
  Json result;
  (void)tenant_pool.take_gaps_us();
  std::this_thread::sleep_for(kCalm);
  result["calm_longest_gap_ms"] = longest_ms(tenant_pool.take_gaps_us());
  const TimePoint died = SystemClock().now();
  scenario.system->kill_broker();
  TRY(scenario.system->start_broker());
  TRY(scenario.system->broker().status());
  result["to_answer_ms"] = ms_since(died);
  const auto taken = tenant_pool.running().at(0);
  TRY(scenario.system->revoke(taken.lease));
  const auto end = tenant_pool.await_end(taken.lease, kRecoveryTimeout);
  if (!end) return fail(Errc::TimedOut, "the first revoked tenant got no typed end");
  result["to_first_revoke_ms"] = ms_since(died);
  if (!tenant_pool.await_token(taken.client, end->at, kRecoveryTimeout)) {
    return fail(Errc::TimedOut, "no token under a new lease");
  }
  result["to_first_grant_ms"] = ms_since(died);
  result["longest_gap_ms"] = longest_ms(tenant_pool.take_gaps_us());
  TRY(tenant_pool.await_tokens(tenant_pool.tokens() + kTokensAfter * kTenants, kRecoveryTimeout));
  result["tokens_lost"] = tenant_pool.losses().tokens;
  result["streams_broken"] = tenant_pool.losses().streams;
  return result;
}

Result<Json> measure_worker_death(const SystemConfig& config) {
  Scenario scenario = TRY(start_scenario(config));
  const TimePoint died = SystemClock().now();
  scenario.system->kill_worker();
  return measure_recovery(scenario, died, [&] { return scenario.system->start_worker(); });
}

Result<Json> measure_cold_restart(const SystemConfig& config) {
  Scenario scenario = TRY(start_scenario(config));
  const TimePoint died = SystemClock().now();
  scenario.system->kill_worker();
  scenario.system->kill_broker();
  return measure_recovery(scenario, died, [&]() -> Result<void> {
    TRY(scenario.system->start_broker());
    TRY(scenario.system->admit_pool(kTenants));
    return scenario.system->start_worker();
  });
}

Result<Json> measure_tenant_death_ms(const SystemConfig& config) {
  auto system = TRY(System::start(config));
  TRY(system->admit("bench-0"));
  const std::uint64_t capacity = TRY(system->broker().status()).capacity_bytes;
  auto tenant =
      TRY(Child::start({.argv = {config.bin_dir + "/leasehold-tenant", "--socket",
                                 system->broker_socket(), "--tenant", "bench-0", "--prompt", "Once",
                                 "--max-tokens", "100000", "--ignore-eos"},
                        .log_path = "/dev/null"}));
  const TimePoint deadline = SystemClock().now() + kRecoveryTimeout;
  const auto await_memory = [&](auto&& condition) -> Result<void> {
    while (SystemClock().now() < deadline) {
      if (condition(TRY(system->broker().status()).free_bytes)) return {};
      std::this_thread::sleep_for(kMemoryPollInterval);
    }
    return fail(Errc::TimedOut, "the amount of free memory does not change");
  };
  TRY(await_memory([&](std::uint64_t free) { return free < capacity; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the stream is running
  const TimePoint died = SystemClock().now();
  TRY(tenant.signal(SIGKILL));
  TRY(await_memory([&](std::uint64_t free) { return free == capacity; }));
  return ms_since(died);
}

Result<Json> measure_rebind_ms(const SystemConfig& config) {
  Scenario scenario = TRY(start_scenario(config));
  std::vector<double> times;
  for (std::uint32_t i = 0; i < kRebinds; ++i) {
    TRY(scenario.tenant_pool->await_running(kTenants, kRecoveryTimeout));
    const auto taken = scenario.tenant_pool->running().at(i % kTenants);
    const TimePoint begin = SystemClock().now();
    TRY(scenario.system->revoke(taken.lease));
    const auto end = scenario.tenant_pool->await_end(taken.lease, kRecoveryTimeout);
    if (!end) return fail(Errc::TimedOut, "the revoked tenant got no typed end");
    const auto token = scenario.tenant_pool->await_token(taken.client, end->at, kRecoveryTimeout);
    if (!token) return fail(Errc::TimedOut, "no token after the rebind");
    times.push_back(ms_of(*token - begin));
  }
  return median_of(times);
}

}  // namespace leasehold::bench
