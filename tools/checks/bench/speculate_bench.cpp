#include "tools/checks/bench/speculate_bench.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "tools/checks/bench/statistics.hpp"
#include "tools/checks/bench/system.hpp"
#include "tools/checks/bench/tenant_pool.hpp"

namespace leasehold::bench {
namespace {

constexpr Duration kSpeculateTimeout = std::chrono::minutes(10);
constexpr const char* kSpeculateTenant = "speculate";
constexpr std::uint32_t kSpeculateTextTokens = 200;
constexpr std::int32_t kRepeatedWords = 12;
constexpr float kMostBias = 100.0f;
constexpr std::uint64_t kSpeculatePromptTokens = 8;

constexpr const char* kTextKinds[] = {"repetitive", "greedy", "other"};

/// A model that may choose between a few words only soon repeats itself.
wire::Sampling sampling_of(std::string_view kind) {
  wire::Sampling sampling;
  if (kind == "other") sampling.temperature = 1.0f;
  for (std::int32_t i = 0; kind == "repetitive" && i < kRepeatedWords; ++i)
    sampling.logit_bias.by_token[TenantPool::kFirstPromptToken + i] = kMostBias;
  return sampling;
}

/// Words that differ in each request.
std::vector<std::int32_t> words_of(std::uint32_t, std::uint64_t request) {
  std::vector<std::int32_t> prompt;
  for (std::uint64_t i = 0; i < kSpeculatePromptTokens; ++i) {
    const std::uint64_t word = (request * 11 + i * 17) % TenantPool::kPromptWords;
    prompt.push_back(TenantPool::kFirstPromptToken + static_cast<std::int32_t>(word));
  }
  return prompt;
}

Result<double> tokens_per_s(System& system, const SpeculateBenchConfig& config, const char* kind) {
  const std::string name = fmt::format("{}-{}", kSpeculateTenant, kind);
  TRY(system.admit(name + "-0"));
  const TenantPool pool({.broker_socket = system.broker_socket(),
                         .max_tokens = kSpeculateTextTokens,
                         .name = name,
                         .sampling = sampling_of(kind),
                         .prompt = words_of});
  TRY(pool.await_tokens(1, kSpeculateTimeout));
  const SystemClock clock;
  const TimePoint begin = clock.now();
  const std::uint64_t before = pool.tokens();
  TRY(pool.await_tokens(before + config.tokens, kSpeculateTimeout));
  const double seconds = static_cast<double>((clock.now() - begin).count()) / 1e9;
  return static_cast<double>(pool.tokens() - before) / seconds;
}

}  // namespace

Result<nlohmann::json> measure_speculation(const SpeculateBenchConfig& config) {
  struct Rates {
    std::vector<double> without, with, ratio;
  };
  Rates rates[std::size(kTextKinds)];
  const auto start = [&config](std::uint32_t proposals) {
    std::vector<std::string> worker_options{"--speculate", std::to_string(proposals)};
    if (proposals > 0 && !config.draft_model.empty())
      worker_options.insert(worker_options.end(), {"--draft-model", config.draft_model});
    return System::start({.bin_dir = config.bin_dir,
                          .model_path = config.model_path,
                          .threads = config.threads,
                          .broker_options = {},
                          .worker_options = std::move(worker_options)});
  };
  for (std::uint32_t round = 0; round < config.rounds; ++round) {
    for (const bool is_first : {true, false}) {
      const std::uint32_t proposals = is_first == (round % 2 == 0) ? 0 : config.proposals;
      const auto system = TRY(start(proposals));
      for (std::size_t i = 0; i < std::size(kTextKinds); ++i)
        (proposals == 0 ? rates[i].without : rates[i].with)
            .push_back(TRY(tokens_per_s(*system, config, kTextKinds[i])));
    }
  }
  nlohmann::json json = {{"proposals", config.proposals},
                         {"threads", config.threads},
                         {"draft_model", config.draft_model}};
  for (std::size_t i = 0; i < std::size(kTextKinds); ++i) {
    for (std::size_t round = 0; round < config.rounds; ++round)
      rates[i].ratio.push_back(rates[i].with[round] / rates[i].without[round]);
    json[kTextKinds[i]] = {{"without_tokens_s", median_of(rates[i].without)},
                           {"with_tokens_s", median_of(rates[i].with)},
                           {"ratio", median_of(rates[i].ratio)}};
  }
  return nlohmann::json{{"speculate", std::move(json)}};
}

}  // namespace leasehold::bench
