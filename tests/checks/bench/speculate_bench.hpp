/// The gain of proposed tokens on a text that repeats itself, and their cost on a text that does
/// not.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "common/result.hpp"

namespace leasehold::bench {

struct SpeculateBenchConfig {
  std::string bin_dir;
  std::string model_path;
  std::uint32_t threads = 1;
  std::uint32_t proposals = 8;   ///< The worker's --speculate.
  std::string draft_model;       ///< The worker's --draft-model; empty: n-grams.
  std::uint32_t tokens = 4'000;  ///< Tokens of each text in each round.
  std::uint32_t rounds = 5;      ///< Each round runs once with and once without proposals.
};

/// {"speculate": {"proposals", "threads", "draft_model", "repetitive": {"without_tokens_s",
/// "with_tokens_s", "ratio", "proposed", "acceptance"}, "greedy": {…}, "other": {…}}}: speeds and
/// ratios are medians over the rounds; "proposed" is the number of proposed tokens and "acceptance"
/// the accepted share, both over all rounds. One tenant's requests of 200 tokens run one after the
/// other: "repetitive" texts are greedy with a vocabulary of three words, "greedy" texts are greedy
/// with all words, and "other" texts are drawn with temperature 1. Errors: those of System::start,
/// TenantPool and fetch_metrics.
Result<nlohmann::json> measure_speculation(const SpeculateBenchConfig& config);

/// Fetches the page from the path of a Unix socket; blocks for at most ten seconds.
/// Errors: ConnectionLost.
Result<std::string> fetch_metrics(const std::string& socket_path);

/// The value of a metric without labels. Errors: BadRequest if the page has no metric of that name.
Result<double> metric_of(std::string_view page, std::string_view name);

}  // namespace leasehold::bench
