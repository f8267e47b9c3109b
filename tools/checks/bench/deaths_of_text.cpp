#include "tools/checks/bench/deaths_of_text.hpp"

#include <fmt/format.h>

#include <chrono>

#include "common/clock.hpp"
#include "common/text_file.hpp"
#include "tools/checks/bench/rebinding_text.hpp"
#include "tools/checks/bench/worker_start.hpp"

namespace leasehold::bench {
namespace {

constexpr const char* kTextTenant = "text";
constexpr std::size_t kTokensBetweenDeaths = 24;  // the back-off starts again after 16
constexpr std::uint32_t kMostTokens = 1u << 20;
constexpr std::size_t kMaxLogBytes = 64u << 20;

std::int64_t now_us() {
  return SystemClock().now().boottime_ns / 1'000;
}

/// What to add to a boot time to get the time of a log line.
std::int64_t log_offset_us() {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(since_1970).count() - now_us();
}

struct Scene {
  std::unique_ptr<System> system;
  std::unique_ptr<RebindingText> text;
};

Result<Scene> start_scene(const DeathsConfig& config, const client::RetryPolicy& retry) {
  Scene scene{.system = TRY(System::start(system_config(config)))};
  TRY(scene.system->admit(kTextTenant));
  scene.text = std::make_unique<RebindingText>(
      RebindingTextConfig{.broker_socket = scene.system->broker_socket(),
                          .tenant = kTextTenant,
                          .prompt_tokens = config.prompt_tokens,
                          .max_tokens = kMostTokens,
                          .retry = retry});
  return scene;
}

/// The moments of one death, as boot times in µs.
struct Death {
  std::int64_t killed = 0, seen = 0, ready = 0, granted = 0, token = 0;
};

Result<Death> die_and_recover(Scene& scene) {
  TRY(scene.text->await_tokens(scene.text->tokens() + kTokensBetweenDeaths));
  const std::size_t grant = scene.text->leases().size();
  Death death{.killed = now_us()};
  scene.system->kill_worker();
  death.seen = now_us();
  TRY(scene.system->start_worker());
  death.ready = now_us();
  const RebindingText::Recovered recovered = TRY(scene.text->await_grant(grant));
  death.granted = recovered.granted.boottime_ns / 1'000;
  death.token = recovered.token.boottime_ns / 1'000;
  return death;
}

double ms_between(std::int64_t from_us, std::int64_t to_us) {
  return static_cast<double>(to_us - from_us) / 1e3;
}

void add_stages(AdoptedDeaths& deaths, const Death& death, const StartTimes& start) {
  deaths.kill_to_token_ms.push_back(ms_between(death.killed, death.token));
  std::int64_t before = death.killed;
  int number = 0;
  const auto add = [&](const std::string& stage, std::int64_t end) {
    deaths.stages_ms[fmt::format("{} {}", ++number, stage)].push_back(ms_between(before, end));
    before = end;
  };
  add("death seen", death.seen);
  for (std::size_t i = 0; i < kStartStages.size(); ++i) add(kStartStages[i].name, start[i]);
  add("grant", death.granted);
  add("first step", death.token);
}

}  // namespace

SystemConfig system_config(const DeathsConfig& config) {
  return {.bin_dir = config.bin_dir,
          .model_path = config.model_path,
          .threads = config.threads,
          .worker_options = {"--arithmetic", config.arithmetic},
          .journal = true};  // a broker that starts cold knows the tenants
}

Result<AdoptedDeaths> measure_adopted_deaths(const DeathsConfig& config) {
  Scene scene = TRY(start_scene(config, kEagerRetry));
  AdoptedDeaths deaths;
  for (std::uint32_t round = 0; round < config.rounds; ++round) {
    const Death death = TRY(die_and_recover(scene));
    const std::string log = TRY(read_text_file(scene.system->worker_log_path(), kMaxLogBytes));
    if (!log.substr(log.rfind(kStartStages.front().words)).contains("memory adopted"))
      return fail(Errc::SystemError, "the successor did not adopt the text's memory");
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
    times.push_back(ms_between(death.killed, death.token));
  }
  return times;
}

Result<ColdDeaths> measure_cold_deaths(const DeathsConfig& config) {
  Scene scene = TRY(start_scene(config, kEagerRetry));
  ColdDeaths deaths;
  for (std::uint32_t round = 0; round < config.rounds; ++round) {
    TRY(scene.text->await_tokens(scene.text->tokens() + kTokensBetweenDeaths));
    const std::size_t grant = scene.text->leases().size();
    const std::int64_t killed = now_us();
    scene.system->kill_worker();
    scene.system->kill_broker();
    TRY(scene.system->start_broker());
    TRY(scene.system->start_worker());
    deaths.kill_to_ready_ms.push_back(ms_between(killed, now_us()));
    const auto recovered = TRY(scene.text->await_grant(grant));
    deaths.kill_to_token_ms.push_back(ms_between(killed, recovered.token.boottime_ns / 1'000));
  }
  return deaths;
}

}  // namespace leasehold::bench
