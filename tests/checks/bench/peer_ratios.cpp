#include "tests/checks/bench/peer_ratios.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/checks/bench/engine_figures.hpp"
#include "tests/checks/bench/peer_output.hpp"
#include "tests/checks/bench/thread_time.hpp"
#include "tests/checks/peer/peer_programs.hpp"
#include "tools/cli/table.hpp"

namespace leasehold::bench {
namespace {

constexpr std::uint32_t kPeerContext = 4096;  // divided among its sequences

std::string key_of(const std::string& path) {
  std::string key = std::filesystem::path(path).stem();
  std::ranges::replace(key, '.', '_');
  return key;
}

/// The measurement of one file with one number of threads.
struct Run {
  const PeerRatiosConfig& config;
  const PeerPrograms& programs;
  const std::string& model_path;
  std::uint32_t threads;
};

struct PeerRound {
  PeerBenchOutput bench;
  Figures figures;
};

Result<PeerRound> measure_peer(const Run& run) {
  const std::string threads = std::to_string(run.threads);
  const std::string decoded = std::to_string(run.config.decoded_tokens);
  const std::string single =
      TRY(run.programs.output_of("llama-bench", {"-m", run.model_path, "-t", threads, "-ngl", "0",
                                                 "-p", std::to_string(run.config.prompt_tokens),
                                                 "-n", decoded, "-r", "1", "-o", "jsonl"}));
  const std::string batches = TRY(run.programs.output_of(
      "llama-batched-bench",
      {"-m", run.model_path, "-t", threads, "-tb", threads, "-ngl", "0", "-c",
       std::to_string(kPeerContext), "-npp", std::to_string(kTextTokens), "-ntg", decoded, "-npl",
       fmt::format("{},{}", kSmallBatch, kLargeBatch), "--output-format", "jsonl"}));
  PeerRound round{TRY(parse_peer_bench(single, run.threads)),
                  TRY(parse_peer_batches(batches, run.threads))};
  round.figures["prefill"] = round.bench.prefill;
  round.figures["decode"] = round.bench.decode;
  return round;
}

/// Adds the figures of both programs to the report.
Result<void> measure(const Run& run, nlohmann::json& report) {
  const FigureSteps steps{.prompt_tokens = run.config.prompt_tokens,
                          .decoded_tokens = run.config.decoded_tokens,
                          .now_ns = wall_time_ns};
  LocalOptions options = options_for(steps);
  options.model_path = run.model_path;
  options.threads = run.threads;
  options.arithmetic = Arithmetic::Int8;  // a worker's default; F16 matrices stay in f32
  const auto model = TRY(LocalModel::load(std::move(options)));
  std::vector<Figures> ours;
  std::vector<Figures> peers;
  nlohmann::json& file = report[key_of(run.model_path)];
  for (std::uint32_t i = 0; i < run.config.rounds; ++i) {
    ours.push_back(TRY(measure_figures(*model, steps)));
    PeerRound round = TRY(measure_peer(run));
    peers.push_back(std::move(round.figures));
    report["version"] = round.bench.version;
    file["format"] = round.bench.format;
  }
  const Figures our_medians = medians_of(ours);
  const Figures peer_medians = medians_of(peers);
  file[fmt::format("{}_threads", run.threads)] = {{"ours", our_medians},
                                                  {"peer", peer_medians},
                                                  {"ratio", ratios_of(our_medians, peer_medians)}};
  return {};
}

Result<void> check_names(const PeerRatiosConfig& config) {
  std::vector<std::string> keys;
  for (const std::string& path : config.model_paths) {
    if (std::ranges::find(keys, key_of(path)) != keys.end())
      return fail(Errc::BadRequest,
                  fmt::format("two models are named {}; rename a file", key_of(path)));
    keys.push_back(key_of(path));
  }
  return {};
}

}  // namespace

Result<nlohmann::json> measure_peer_ratios(const PeerRatiosConfig& config) {
  const auto programs =
      TRY(PeerPrograms::open(config.peer_dir, {"llama-bench", "llama-batched-bench"}));
  TRY(check_names(config));
  nlohmann::json report{{"rounds", config.rounds}, {"prompt_tokens", config.prompt_tokens}};
  for (const std::string& path : config.model_paths)
    for (const std::uint32_t threads : config.threads)
      TRY(measure({config, programs, path, threads}, report));
  return nlohmann::json{{"peer", std::move(report)}};
}

std::string peer_ratios_text(const nlohmann::json& report) {
  const nlohmann::json& peer = report.at("peer");
  cli::Table table{.columns = {{"FILE"},
                               {"FORMAT"},
                               {"THREADS"},
                               {"FIGURE"},
                               {"OURS", true},
                               {"PEER", true},
                               {"RATIO", true}}};
  for (const auto& [name, file] : peer.items()) {
    if (!file.is_object()) continue;
    for (const auto& [threads, run] : file.items()) {
      if (!run.is_object()) continue;
      for (const auto& [figure, ratio] : run.at("ratio").items())
        table.rows.push_back({name, file.at("format"), threads, figure,
                              fmt::format("{:.1f}", run.at("ours").at(figure).get<double>()),
                              fmt::format("{:.1f}", run.at("peer").at(figure).get<double>()),
                              fmt::format("{:.2f}", ratio.get<double>())});
    }
  }
  return cli::render(table) +
         fmt::format("Tokens per second, medians of {} rounds; the peer is llama.cpp {}.\n",
                     peer.at("rounds").get<std::uint32_t>(), peer.at("version").get<std::string>());
}

}  // namespace leasehold::bench
