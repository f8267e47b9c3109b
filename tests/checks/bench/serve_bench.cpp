#include "tests/checks/bench/serve_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "tests/checks/bench/prefix_hits.hpp"
#include "tests/checks/bench/report.hpp"
#include "tests/checks/bench/served_shares.hpp"
#include "tests/checks/bench/stalled_index.hpp"
#include "tests/checks/bench/statistics.hpp"
#include "tests/checks/bench/system.hpp"
#include "tests/checks/bench/tenant_pool.hpp"
#include "tests/checks/bench/tick_cost.hpp"

namespace leasehold::bench {
namespace {

using Json = nlohmann::json;

constexpr Duration kStartTimeout = std::chrono::minutes(2);
constexpr Duration kFirstTokenTimeout = std::chrono::minutes(10);
constexpr Duration kErrorInterval = std::chrono::milliseconds(200);
constexpr std::uint32_t kStreamTokens = 512;
constexpr const char* kArriving = "arriving";

/// Measures streams while a long prompt arrives.
class StreamsBench {
 public:
  StreamsBench(const ServeConfig& config, System& system) : config_(config), system_(system) {}

  Result<void> measure() {
    TRY(system_.admit_pool(config_.streams));
    TRY(system_.admit(fmt::format("{}-0", kArriving)));
    for (std::uint32_t round = 0; round < config_.rounds; ++round) {
      alone_s_.push_back(TRY(first_token_s()));
      TRY(measure_round());
    }
    return {};
  }

  Json json() const {
    const Distribution calm = distribution_of(calm_us_);
    const Distribution beside = distribution_of(beside_us_);
    const double alone_s = median_of(alone_s_);
    const double beside_s = median_of(beside_s_);
    return {{"streams", config_.streams},
            {"prompt_tokens", config_.prompt_tokens},
            {"inter_token_us",
             {{"calm", to_json(calm)},
              {"long_prompt", to_json(beside)},
              {"p50_ratio", beside.p50 / calm.p50},
              {"p99_ratio", beside.p99 / calm.p99}}},
            {"first_token_s",
             {{"alone", alone_s}, {"beside_streams", beside_s}, {"ratio", beside_s / alone_s}}}};
  }

 private:
  /// The time includes acquiring the lease, which takes a few milliseconds.
  Result<double> first_token_s() {
    const SystemClock clock;
    const TimePoint begin = clock.now();
    const TenantPool arriving({.broker_socket = system_.broker_socket(),
                               .prompt_tokens = config_.prompt_tokens,
                               .max_tokens = 1,
                               .name = kArriving});
    while (clock.now() - begin < kFirstTokenTimeout) {
      if (const auto token = arriving.await_token(0, begin, kErrorInterval))
        return static_cast<double>((*token - begin).count()) / 1e9;
      if (const auto error = arriving.final_error()) return std::unexpected(*error);
    }
    return fail(Errc::TimedOut, "the long prompt got no token within ten minutes");
  }

  Result<void> measure_round() {
    TenantPool streams({.broker_socket = system_.broker_socket(),
                        .clients = config_.streams,
                        .max_tokens = kStreamTokens});
    TRY(streams.await_running(config_.streams, kStartTimeout));
    (void)streams.take_gaps_us();
    std::this_thread::sleep_for(config_.calm);
    std::ranges::copy(streams.take_gaps_us(), std::back_inserter(calm_us_));
    beside_s_.push_back(TRY(first_token_s()));
    std::ranges::copy(streams.take_gaps_us(), std::back_inserter(beside_us_));
    return {};
  }

  const ServeConfig& config_;
  System& system_;
  std::vector<double> alone_s_, beside_s_, calm_us_, beside_us_;
};

bool is_wanted(const ServeConfig& config, std::string_view measurement) {
  return config.measurements.empty() ||
         std::ranges::find(config.measurements, measurement) != config.measurements.end();
}

SystemConfig system_config(const ServeConfig& config) {
  const std::uint32_t cores = std::max(2u, std::thread::hardware_concurrency());
  return {.bin_dir = config.bin_dir,
          .model_path = config.model_path,
          .threads = cores - 1,
          .broker_options = {},
          .worker_options = {"--arithmetic", config.arithmetic}};
}

/// Runs the measurements that share one broker and one worker.
Result<void> measure_on_system(const ServeConfig& config, Json& json) {
  const auto system = TRY(System::start(system_config(config)));
  const auto workers = TRY(system->broker().workers());
  if (!workers.empty()) json["arithmetic"] = workers.front().arithmetic;
  if (is_wanted(config, "prefix")) json["prefix_hit"] = TRY(measure_prefix_hits(*system, {}));
  if (is_wanted(config, "streams")) {
    StreamsBench streams(config, *system);
    TRY(streams.measure());
    json["streams"] = streams.json();
  }
  return {};
}

}  // namespace

Result<Json> measure_serve(const ServeConfig& config) {
  Json json = {{"arithmetic", config.arithmetic}};
  if (is_wanted(config, "streams") || is_wanted(config, "prefix"))
    TRY(measure_on_system(config, json));
  if (is_wanted(config, "stalled_index")) {
    json["stalled_index"] = TRY(measure_stalled_index(
        system_config(config), {.streams = config.streams, .rounds = config.rounds}));
  }
  if (is_wanted(config, "shares")) {
    const std::string& model =
        config.shares_model_path.empty() ? config.model_path : config.shares_model_path;
    json["shares"] = TRY(measure_served_shares({.bin_dir = config.bin_dir, .model_path = model}));
  }
  if (is_wanted(config, "tick")) {
    const TickTimes tick = measure_tick_us({});
    json["tick_us"] = {{"schedule", to_json(tick.schedule)}, {"commit", to_json(tick.commit)}};
  }
  return Json{{"serve", std::move(json)}};
}

}  // namespace leasehold::bench
