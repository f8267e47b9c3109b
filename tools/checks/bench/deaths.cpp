#include "tools/checks/bench/deaths.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <functional>
#include <thread>

#include "common/clock.hpp"
#include "tools/checks/bench/statistics.hpp"
#include "tools/checks/bench/system.hpp"
#include "tools/checks/bench/tenant_pool.hpp"

namespace leasehold::bench {
namespace {

constexpr Duration kPatience = std::chrono::seconds(120);
constexpr auto kLookAgain = std::chrono::milliseconds(1);
constexpr int kRebinds = 20;
constexpr auto kCalm = std::chrono::milliseconds(500);
/// For each tenant; more than one request has, so that each tells its end.
constexpr std::uint64_t kTokensAfter = 150;

double ms_since(TimePoint begin) {
  return static_cast<double>((SystemClock().now() - begin).count()) / 1e6;
}

struct Scene {
  std::unique_ptr<System> system;
  std::unique_ptr<Crowd> crowd;
};

Result<void> admit_all(System& system, const DeathsConfig& config) {
  for (std::uint32_t i = 0; i < config.tenants; ++i) {
    TRY(system.admit(fmt::format("bench-{}", i)));
  }
  return {};
}

Result<Scene> set_scene(const DeathsConfig& config, bool with_store = false) {
  Scene scene{.system = TRY(System::start({.bin_dir = config.bin_dir,
                                           .model_path = config.model_path,
                                           .threads = config.threads,
                                           .journal = with_store,
                                           .keep_descriptors = with_store})),
              .crowd = nullptr};
  TRY(admit_all(*scene.system, config));
  scene.crowd = std::make_unique<Crowd>(
      CrowdConfig{.broker_socket = scene.system->broker_socket(), .seats = config.tenants});
  TRY(scene.crowd->await_running(config.tenants, kPatience));
  return scene;
}

/// What follows a death: `restart` brings the processes back, the tenants come by themselves.
Result<DeathTimes> time_comeback(Scene& scene, const DeathsConfig& config, TimePoint died,
                                 const std::function<Result<void>()>& restart) {
  TRY(restart());
  scene.crowd->forget_running();  // tokens that were still on their way are no service
  DeathTimes times;
  TRY(scene.crowd->await_running(1, kPatience));
  times.first_token_ms = ms_since(died);
  const auto running = scene.crowd->running();
  if (running.empty()) return fail(Errc::TimedOut, "the tenant that came back is gone again");
  TRY(scene.system->revoke(running.front().lease));
  if (!scene.crowd->await_end(running.front().lease, kPatience)) {
    return fail(Errc::TimedOut, "no typed end of the first revoke");
  }
  times.first_revoke_ms = ms_since(died);
  TRY(scene.crowd->await_running(config.tenants, kPatience));
  times.all_tenants_ms = ms_since(died);
  return times;
}

double longest_ms(const std::vector<TokenGap>& gaps) {
  double longest = 0;
  for (const TokenGap& gap : gaps) longest = std::max(longest, gap.gap_us / 1e3);
  return longest;
}

}  // namespace

Result<BrokerDeath> measure_broker_death(const DeathsConfig& config) {
  Scene scene = TRY(set_scene(config, true));
  Crowd& crowd = *scene.crowd;
  BrokerDeath result;
  (void)crowd.take_gaps();
  std::this_thread::sleep_for(kCalm);
  result.calm_gap_ms = longest_ms(crowd.take_gaps());
  const TimePoint died = SystemClock().now();
  TRY(scene.system->kill_broker());
  TRY(scene.system->start_broker());
  TRY(scene.system->status());
  result.answers_ms = ms_since(died);
  const auto taken = crowd.running().at(0);
  TRY(scene.system->revoke(taken.lease));
  const auto end = crowd.await_end(taken.lease, kPatience);
  if (!end) return fail(Errc::TimedOut, "no typed end of the first revoke");
  result.first_revoke_ms = ms_since(died);
  if (!crowd.await_token(taken.seat, end->at, kPatience)) {
    return fail(Errc::TimedOut, "no token under a fresh lease");
  }
  result.first_grant_ms = ms_since(died);
  result.longest_gap_ms = longest_ms(crowd.take_gaps());
  TRY(crowd.await_tokens(crowd.tokens() + kTokensAfter * config.tenants, kPatience));
  result.tokens_lost = crowd.losses().tokens;
  result.streams_broken = crowd.losses().streams;
  return result;
}

Result<DeathTimes> measure_worker_death(const DeathsConfig& config) {
  Scene scene = TRY(set_scene(config));
  const TimePoint died = SystemClock().now();
  TRY(scene.system->kill_worker());
  return time_comeback(scene, config, died, [&] { return scene.system->start_worker(); });
}

Result<DeathTimes> measure_cold_restart(const DeathsConfig& config) {
  Scene scene = TRY(set_scene(config));
  const TimePoint died = SystemClock().now();
  TRY(scene.system->kill_worker());
  TRY(scene.system->kill_broker());
  return time_comeback(scene, config, died, [&]() -> Result<void> {
    TRY(scene.system->start_broker());
    TRY(admit_all(*scene.system, config));
    return scene.system->start_worker();
  });
}

Result<double> measure_tenant_death_ms(const DeathsConfig& config) {
  auto system = TRY(System::start(
      {.bin_dir = config.bin_dir, .model_path = config.model_path, .threads = config.threads}));
  TRY(system->admit("bench-0"));
  const std::uint64_t capacity = TRY(system->status()).capacity_bytes;
  auto tenant =
      TRY(Child::start({.argv = {config.bin_dir + "/leasehold-tenant", "--socket",
                                 system->broker_socket(), "--tenant", "bench-0", "--prompt", "Once",
                                 "--max-tokens", "100000", "--ignore-eos"},
                        .log_path = "/dev/null"}));
  const TimePoint give_up = SystemClock().now() + kPatience;
  const auto await_memory = [&](auto&& as_wanted) -> Result<void> {
    while (SystemClock().now() < give_up) {
      if (as_wanted(TRY(system->status()).free_bytes)) return {};
      std::this_thread::sleep_for(kLookAgain);
    }
    return fail(Errc::TimedOut, "the tenant's memory does not move");
  };
  TRY(await_memory([&](std::uint64_t free) { return free < capacity; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // somewhere in the stream
  const TimePoint died = SystemClock().now();
  TRY(tenant.signal(SIGKILL));
  TRY(await_memory([&](std::uint64_t free) { return free == capacity; }));
  return ms_since(died);
}

Result<double> measure_rebind_ms(const DeathsConfig& config) {
  Scene scene = TRY(set_scene(config));
  std::vector<double> times;
  for (int i = 0; i < kRebinds; ++i) {
    TRY(scene.crowd->await_running(config.tenants, kPatience));
    const auto taken = scene.crowd->running().at(static_cast<std::size_t>(i) % config.tenants);
    const TimePoint begin = SystemClock().now();
    TRY(scene.system->revoke(taken.lease));
    const auto end = scene.crowd->await_end(taken.lease, kPatience);
    if (!end) return fail(Errc::TimedOut, "no typed end");
    const auto token = scene.crowd->await_token(taken.seat, end->at, kPatience);
    if (!token) return fail(Errc::TimedOut, "no token after the rebind");
    times.push_back(static_cast<double>((*token - begin).count()) / 1e6);
  }
  return median_of(times);
}

}  // namespace leasehold::bench
