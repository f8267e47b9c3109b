#include "tests/checks/bench/deaths_of_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "common/clock.hpp"
#include "common/machine/text_file.hpp"
#include "tests/checks/bench/rebinding_text.hpp"
#include "tests/checks/bench/worker_start.hpp"

namespace leasehold::bench {
namespace {

constexpr std::size_t kTokensBetweenDeaths = 24;  // the back-off starts again after 16
constexpr std::uint32_t kMostTokens = 1u << 20;
constexpr std::size_t kMaxLogBytes = 64u << 20;

std::int64_t now_us() {
  return SystemClock().now().boottime_ns / 1'000;
}

/// Added to a boot time, this gives the time of a log line.
std::int64_t log_offset_us() {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(since_1970).count() - now_us();
}

struct Scene {
  std::unique_ptr<System> system;
  std::vector<std::unique_ptr<RebindingText>> texts;
};

Result<Scene> start_scene(const DeathsConfig& config, const client::RetryPolicy& retry) {
  Scene scene{.system = TRY(System::start(system_config(config)))};
  for (std::uint32_t i = 0; i < config.texts; ++i) {
    const std::string tenant = fmt::format("text-{}", i);
    TRY(scene.system->admit(tenant));
    scene.texts.push_back(std::make_unique<RebindingText>(
        RebindingTextConfig{.broker_socket = scene.system->broker_socket(),
                            .tenant = tenant,
                            .prompt_tokens = config.prompt_tokens,
                            .max_tokens = kMostTokens,
                            .retry = retry}));
  }
  for (const auto& text : scene.texts) TRY(text->await_tokens(1));
  return scene;
}

Result<void> await_more_tokens(const Scene& scene) {
  std::vector<std::size_t> enough;
  for (const auto& text : scene.texts) enough.push_back(text->tokens() + kTokensBetweenDeaths);
  for (std::size_t i = 0; i < enough.size(); ++i) TRY(scene.texts[i]->await_tokens(enough[i]));
  return {};
}

std::vector<std::size_t> grants_so_far(const Scene& scene) {
  std::vector<std::size_t> grants;
  for (const auto& text : scene.texts) grants.push_back(text->leases().size());
  return grants;
}

/// Boot times in µs: the grant of the new lease, and the first token under it.
struct TextRecovery {
  std::int64_t granted = 0, token = 0;
};

/// Returns the recoveries in the order of their tokens.
Result<std::vector<TextRecovery>> await_recoveries(const Scene& scene,
                                                   const std::vector<std::size_t>& grants) {
  std::vector<TextRecovery> recoveries;
  for (std::size_t i = 0; i < scene.texts.size(); ++i) {
    const RebindingText::Recovered recovered = TRY(scene.texts[i]->await_grant(grants[i]));
    recoveries.push_back({.granted = recovered.granted.boottime_ns / 1'000,
                          .token = recovered.token.boottime_ns / 1'000});
  }
  std::ranges::sort(recoveries, {}, &TextRecovery::token);
  return recoveries;
}

/// The times of one death, as boot times in µs.
struct Death {
  std::int64_t killed = 0, seen = 0, ready = 0;
  std::vector<TextRecovery> texts;
};

Result<Death> die_and_recover(Scene& scene) {
  TRY(await_more_tokens(scene));
  const std::vector<std::size_t> grants = grants_so_far(scene);
  Death death{.killed = now_us()};
  scene.system->kill_worker();
  death.seen = now_us();
  TRY(scene.system->start_worker());
  death.ready = now_us();
  death.texts = TRY(await_recoveries(scene, grants));
  return death;
}

double ms_between(std::int64_t from_us, std::int64_t to_us) {
  return static_cast<double>(to_us - from_us) / 1e3;
}

void add_stages(AdoptedDeaths& deaths, const Death& death, const StartTimes& start) {
  for (const TextRecovery& text : death.texts)
    deaths.kill_to_token_ms.push_back(ms_between(death.killed, text.token));
  const TextRecovery& first = death.texts.front();
  deaths.first_text_ms.push_back(ms_between(death.killed, first.token));
  deaths.last_text_ms.push_back(ms_between(death.killed, death.texts.back().token));
  std::int64_t before = death.killed;
  int number = 0;
  const auto add = [&](const std::string& stage, std::int64_t end) {
    deaths.stages_ms[fmt::format("{} {}", ++number, stage)].push_back(ms_between(before, end));
    before = end;
  };
  add("death seen", death.seen);
  for (std::size_t i = 0; i < kStartStages.size(); ++i) add(kStartStages[i].name, start[i]);
  add("grant", first.granted);
  add("first step", first.token);
}

std::size_t adopted_records(std::string_view log) {
  constexpr std::string_view kAdopted = " records=1 ";
  std::size_t count = 0;
  for (auto at = log.find(kAdopted); at != log.npos; at = log.find(kAdopted, at + 1)) ++count;
  return count;
}

}  // namespace

SystemConfig system_config(const DeathsConfig& config) {
  return {.bin_dir = config.bin_dir,
          .model_path = config.model_path,
          .threads = config.threads,
          .capacity = "1GiB",
          .worker_options = {"--arithmetic", config.arithmetic, "--slow-motion-us",
                             std::to_string(config.slow_motion_us)},
          .journal = true};  // keeps the tenants for a broker that starts cold
}

Result<AdoptedDeaths> measure_adopted_deaths(const DeathsConfig& config) {
  Scene scene = TRY(start_scene(config, kEagerRetry));
  AdoptedDeaths deaths;
  for (std::uint32_t round = 0; round < config.rounds; ++round) {
    const Death death = TRY(die_and_recover(scene));
    const std::string log = TRY(read_text_file(scene.system->worker_log_path(), kMaxLogBytes));
    const std::size_t adopted = adopted_records(log.substr(log.rfind(kStartStages.front().words)));
    if (adopted != config.texts) {
      return fail(Errc::SystemError,
                  fmt::format("the successor adopted {} of {} texts; its log is "
                              "{}",
                              adopted, config.texts, scene.system->worker_log_path()));
    }
    StartTimes start = TRY(last_start(log));
    const std::int64_t offset = log_offset_us();
    for (std::int64_t& each : start) each -= offset;
    add_stages(deaths, death, start);
  }
  return deaths;
}

Result<std::vector<double>> measure_default_client_ms(const DeathsConfig& config) {
  Scene scene = TRY(start_scene(config, {}));
  std::vector<double> times;
  for (std::uint32_t round = 0; round < config.rounds; ++round) {
    const Death death = TRY(die_and_recover(scene));
    for (const TextRecovery& text : death.texts)
      times.push_back(ms_between(death.killed, text.token));
  }
  return times;
}

Result<ColdDeaths> measure_cold_deaths(const DeathsConfig& config) {
  Scene scene = TRY(start_scene(config, kEagerRetry));
  ColdDeaths deaths;
  for (std::uint32_t round = 0; round < config.rounds; ++round) {
    TRY(await_more_tokens(scene));
    const std::vector<std::size_t> grants = grants_so_far(scene);
    const std::int64_t killed = now_us();
    scene.system->kill_worker();
    scene.system->kill_broker();
    TRY(scene.system->start_broker());
    TRY(scene.system->start_worker());
    deaths.kill_to_ready_ms.push_back(ms_between(killed, now_us()));
    const auto recoveries = TRY(await_recoveries(scene, grants));
    for (const TextRecovery& text : recoveries)
      deaths.kill_to_token_ms.push_back(ms_between(killed, text.token));
  }
  return deaths;
}

}  // namespace leasehold::bench
