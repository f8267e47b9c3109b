#include "tests/checks/bench/speculate_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/local/stream_protocol.hpp>
#include <charconv>
#include <chrono>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "tests/checks/bench/figures.hpp"
#include "tests/checks/bench/system.hpp"
#include "tests/checks/bench/tenant_pool.hpp"
#include "tests/checks/bench/thread_time.hpp"
#include "tests/support/temporary_directory.hpp"

namespace leasehold::bench {
namespace {

constexpr Duration kSpeculateTimeout = std::chrono::minutes(10);
constexpr const char* kSpeculateTenant = "speculate";
constexpr std::uint32_t kSpeculateTextTokens = 200;
constexpr std::int32_t kRepeatedWords = 3;
constexpr float kMostBias = 100.0f;
constexpr std::uint64_t kSpeculatePromptTokens = 8;

constexpr const char* kTextKinds[] = {"repetitive", "greedy", "other"};

/// A model that may choose only between a few words soon repeats itself.
wire::Sampling sampling_of(std::string_view kind) {
  wire::Sampling sampling;
  if (kind == "other") sampling.temperature = 1.0f;
  for (std::int32_t i = 0; kind == "repetitive" && i < kRepeatedWords; ++i)
    sampling.logit_bias.by_token[TenantPool::kFirstPromptToken + i] = kMostBias;
  return sampling;
}

/// The worker's counters since its start.
struct ProposedTokens {
  double proposed = 0, accepted = 0;
};

Result<ProposedTokens> read_proposed(const std::string& metrics_path) {
  const std::string page = TRY(fetch_metrics(metrics_path));
  ProposedTokens counted;
  counted.proposed = TRY(metric_of(page, "leasehold_proposed_tokens_total"));
  counted.accepted = TRY(metric_of(page, "leasehold_accepted_tokens_total"));
  return counted;
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

Result<double> tokens_per_s(System& system, const SpeculateBenchConfig& config,
                            const std::string& kind) {
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
  const double seconds = ms_of(clock.now() - begin) / 1e3;
  return static_cast<double>(pool.tokens() - before) / seconds;
}

Result<std::unique_ptr<System>> start_system(const SpeculateBenchConfig& config,
                                             std::uint32_t proposals,
                                             const std::string& metrics_path) {
  std::vector<std::string> worker_options{"--speculate", std::to_string(proposals), "--metrics",
                                          metrics_path};
  if (proposals > 0 && !config.draft_model.empty())
    worker_options.insert(worker_options.end(), {"--draft-model", config.draft_model});
  return System::start({.bin_dir = config.bin_dir,
                        .model_path = config.model_path,
                        .threads = config.threads,
                        .broker_options = {},
                        .worker_options = std::move(worker_options)});
}

/// Measures each kind of text on one worker.
Result<void> add_round(const SpeculateBenchConfig& config, std::uint32_t proposals,
                       Samples& samples, std::map<std::string, ProposedTokens>& counted) {
  const TemporaryDirectory directory = TRY(TemporaryDirectory::create("speculate-bench"));
  const std::string metrics_path = directory.path() / "metrics.sock";
  const auto system = TRY(start_system(config, proposals, metrics_path));
  ProposedTokens before;
  for (const std::string kind : kTextKinds) {
    const double rate = TRY(tokens_per_s(*system, config, kind));
    samples[kind + (proposals == 0 ? ".without_tokens_s" : ".with_tokens_s")].push_back(rate);
    if (proposals == 0) continue;
    const ProposedTokens now = TRY(read_proposed(metrics_path));
    counted[kind].proposed += now.proposed - before.proposed;
    counted[kind].accepted += now.accepted - before.accepted;
    before = now;
  }
  return {};
}

/// Adds the ratio of each round.
void add_ratios(Samples& samples, const std::string& kind) {
  const std::vector<double>& with = samples[kind + ".with_tokens_s"];
  const std::vector<double>& without = samples[kind + ".without_tokens_s"];
  std::ranges::transform(with, without, std::back_inserter(samples[kind + ".ratio"]),
                         std::divides{});
}

constexpr auto kPageTimeout = std::chrono::seconds(10);

}  // namespace

Result<nlohmann::json> measure_speculation(const SpeculateBenchConfig& config) {
  Samples samples;
  std::map<std::string, ProposedTokens> counted;  // over all rounds with proposals
  for (std::uint32_t round = 0; round < config.rounds; ++round) {
    for (const bool is_first : {true, false})
      TRY(add_round(config, is_first == (round % 2 == 0) ? 0 : config.proposals, samples, counted));
  }
  for (const char* kind : kTextKinds) add_ratios(samples, kind);
  nlohmann::json json = figures_of(samples, Statistic::Median);
  for (const auto& [kind, tokens] : counted)
    json[kind].update(
        {{"proposed", tokens.proposed},
         {"acceptance", tokens.proposed > 0 ? tokens.accepted / tokens.proposed : 0.0}});
  json.update({{"proposals", config.proposals},
               {"threads", config.threads},
               {"draft_model", config.draft_model}});
  return nlohmann::json{{"speculate", std::move(json)}};
}

Result<std::string> fetch_metrics(const std::string& socket_path) {
  boost::asio::local::stream_protocol::iostream stream;
  stream.expires_after(kPageTimeout);
  stream.connect(boost::asio::local::stream_protocol::endpoint(socket_path));
  stream << "GET /metrics HTTP/1.1\r\nHost: worker\r\nConnection: close\r\n\r\n" << std::flush;
  std::ostringstream page;
  page << stream.rdbuf();
  if (page.view().starts_with("HTTP/1.1 200")) return std::move(page).str();
  return fail(Errc::ConnectionLost, fmt::format("{} gives no metrics: {}", socket_path,
                                                page.view().substr(0, page.view().find('\r'))));
}

Result<double> metric_of(std::string_view page, std::string_view name) {
  const std::string before = fmt::format("\n{} ", name);
  const std::size_t at = page.find(before);
  double value = 0;
  if (at != std::string_view::npos) {
    const char* begin = page.data() + at + before.size();
    if (std::from_chars(begin, page.data() + page.size(), value).ec == std::errc{}) return value;
  }
  return fail(Errc::BadRequest, fmt::format("the metrics page has no value of {}", name));
}

}  // namespace leasehold::bench
