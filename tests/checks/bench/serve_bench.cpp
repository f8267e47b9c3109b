#include "tests/checks/bench/serve_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "tests/checks/bench/tenant_pool.hpp"
#include "tests/checks/bench/thread_time.hpp"

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
      samples_["first_token_s.alone"].push_back(TRY(first_token_s()));
      TRY(measure_round());
    }
    return {};
  }

  Json json() const {
    const FigureRow rows[] = {{"inter_token_us.calm"},
                              {"inter_token_us.long_prompt"},
                              {"inter_token_us.p50_ratio", Statistic::Median,
                               "inter_token_us.long_prompt", "inter_token_us.calm"},
                              {"inter_token_us.p99_ratio", Statistic::P99,
                               "inter_token_us.long_prompt", "inter_token_us.calm"},
                              {"first_token_s.alone", Statistic::Median},
                              {"first_token_s.beside_streams", Statistic::Median},
                              {"first_token_s.ratio", Statistic::Median,
                               "first_token_s.beside_streams", "first_token_s.alone"}};
    Json json = {{"streams", config_.streams}, {"prompt_tokens", config_.prompt_tokens}};
    add_figures(json, samples_, rows);
    return json;
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
        return ms_of(*token - begin) / 1e3;
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
    std::ranges::copy(streams.take_gaps_us(), std::back_inserter(samples_["inter_token_us.calm"]));
    samples_["first_token_s.beside_streams"].push_back(TRY(first_token_s()));
    std::ranges::copy(streams.take_gaps_us(),
                      std::back_inserter(samples_["inter_token_us.long_prompt"]));
    return {};
  }

  const ServeConfig& config_;
  System& system_;
  Samples samples_;
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
  if (is_wanted(config, "prefix")) json["prefix_hit"] = TRY(measure_prefix_hits(*system));
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
    json["stalled_index"] =
        TRY(measure_stalled_index(system_config(config), config.streams, config.rounds));
  }
  const std::string& fast_model =
      config.shares_model_path.empty() ? config.model_path : config.shares_model_path;
  if (is_wanted(config, "shares"))
    json["shares"] = TRY(measure_served_shares(config.bin_dir, fast_model));
  if (is_wanted(config, "requests"))
    json["requests"] = TRY(measure_requests(config.bin_dir, fast_model));
  if (is_wanted(config, "tick")) json["tick"] = measure_tick();
  return Json{{"serve", std::move(json)}};
}

}  // namespace leasehold::bench
