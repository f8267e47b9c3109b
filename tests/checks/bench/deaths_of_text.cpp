// Time from the SIGKILL of a worker to the next token of each of its texts, either with a successor
// that adopts their memory or after a cold start.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>

#include "common/clock.hpp"
#include "common/machine/text_file.hpp"
#include "tests/checks/bench/recover_bench.hpp"

namespace leasehold::bench {
namespace {

constexpr std::size_t kTokensBetweenDeaths = 24;  // the back-off starts again after 16
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

Result<Scene> start_scene(const RecoverConfig& config, const client::RetryPolicy& retry) {
  Scene scene{.system = TRY(System::start(system_config(config)))};
  for (std::uint32_t i = 0; i < config.texts; ++i)
    scene.texts.push_back(TRY(start_text(*scene.system, i, config.prompt_tokens, retry)));
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

/// The times of one death, as boot times in µs. The texts are in the order of their tokens.
struct Death {
  std::int64_t killed = 0, seen = 0, ready = 0;
  std::vector<TextRecovery> texts;
};

/// Kills with `kill`, starts with `start`, and waits until each text has a token again.
Result<Death> die_and_recover(Scene& scene, const std::function<void(System&)>& kill,
                              const std::function<Result<void>(System&)>& start) {
  TRY(await_more_tokens(scene));
  const std::vector<std::size_t> grants = grants_so_far(scene);
  Death death{.killed = now_us()};
  kill(*scene.system);
  death.seen = now_us();
  TRY(start(*scene.system));
  death.ready = now_us();
  for (std::size_t i = 0; i < scene.texts.size(); ++i) {
    const RebindingText::Recovered recovered = TRY(scene.texts[i]->await_grant(grants[i]));
    death.texts.push_back({.granted = recovered.granted.boottime_ns / 1'000,
                           .token = recovered.token.boottime_ns / 1'000});
  }
  std::ranges::sort(death.texts, {}, &TextRecovery::token);
  return death;
}

Result<Death> replace_dead_worker(Scene& scene) {
  return die_and_recover(scene, &System::kill_worker, &System::start_worker);
}

double ms_between(std::int64_t from_us, std::int64_t to_us) {
  return static_cast<double>(to_us - from_us) / 1e3;
}

void add_texts(std::vector<double>& kill_to_token_ms, const Death& death) {
  for (const TextRecovery& text : death.texts)
    kill_to_token_ms.push_back(ms_between(death.killed, text.token));
}

/// The stages of one death add up to the time of its first text.
void add_stages(Samples& samples, const Death& death, const StartTimes& start) {
  const TextRecovery& first = death.texts.front();
  samples["adopted.first_text_ms"].push_back(ms_between(death.killed, first.token));
  samples["adopted.last_text_ms"].push_back(ms_between(death.killed, death.texts.back().token));
  std::int64_t before = death.killed;
  int number = 0;
  const auto add = [&](const std::string& stage, std::int64_t end) {
    samples[fmt::format("adopted.stages_ms.{} {}", ++number, stage)].push_back(
        ms_between(before, end));
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

Result<void> measure_adopted(const RecoverConfig& config, Samples& samples) {
  Scene scene = TRY(start_scene(config, kEagerRetry));
  for (std::uint32_t round = 0; round < config.rounds; ++round) {
    const Death death = TRY(replace_dead_worker(scene));
    const std::string log = TRY(read_text_file(scene.system->worker_log_path(), kMaxLogBytes));
    const std::size_t adopted = adopted_records(log.substr(log.rfind(kStartStages.front().words)));
    if (adopted != config.texts)
      return fail(Errc::SystemError,
                  fmt::format("the successor adopted {} of {} texts; its log is {}", adopted,
                              config.texts, scene.system->worker_log_path()));
    StartTimes start = TRY(last_start(log));
    const std::int64_t offset = log_offset_us();
    for (std::int64_t& each : start) each -= offset;
    add_texts(samples["adopted.kill_to_token_ms"], death);
    add_stages(samples, death, start);
  }
  return {};
}

/// With a client that has the default delays between retries.
Result<void> measure_default_client(const RecoverConfig& config, Samples& samples) {
  Scene scene = TRY(start_scene(config, {}));
  for (std::uint32_t round = 0; round < config.rounds; ++round)
    add_texts(samples["default_client.kill_to_token_ms"], TRY(replace_dead_worker(scene)));
  return {};
}

/// Kills broker and worker in each round: prompts and tokens are computed again.
Result<void> measure_cold(const RecoverConfig& config, Samples& samples) {
  Scene scene = TRY(start_scene(config, kEagerRetry));
  const auto kill = [](System& system) {
    system.kill_worker();
    system.kill_broker();
  };
  const auto start = [](System& system) -> Result<void> {
    TRY(system.start_broker());
    return system.start_worker();
  };
  for (std::uint32_t round = 0; round < config.rounds; ++round) {
    const Death death = TRY(die_and_recover(scene, kill, start));
    samples["cold.kill_to_ready_ms"].push_back(ms_between(death.killed, death.ready));
    add_texts(samples["cold.kill_to_token_ms"], death);
  }
  return {};
}

}  // namespace

Result<void> measure_deaths_of_texts(const RecoverConfig& config, Samples& samples) {
  TRY(measure_adopted(config, samples));
  TRY(measure_default_client(config, samples));
  return measure_cold(config, samples);
}

}  // namespace leasehold::bench
