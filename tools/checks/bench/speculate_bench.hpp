/// Measures what proposed tokens gain on a text that repeats itself, and what they cost on other
/// texts.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "common/result.hpp"

namespace leasehold::bench {

struct SpeculateBenchConfig {
  std::string bin_dir;
  std::string model_path;
  std::uint32_t threads = 1;
  std::uint32_t proposals = 8;   ///< The worker's --speculate.
  std::string draft_model;       ///< The worker's --draft-model; empty: use n-grams.
  std::uint32_t tokens = 4'000;  ///< Tokens of each kind of text in each round.
  std::uint32_t rounds = 5;      ///< Each round runs with and without proposals in alternation.
};

/// {"speculate": {"proposals", "threads", "draft_model", "repetitive": {"without_tokens_s",
/// "with_tokens_s", "ratio", "proposed", "acceptance"}, "greedy": {…}, "other": {…}}}: medians over
/// the rounds, also of the ratio; "proposed" counts proposed tokens over all rounds, and
/// "acceptance" is the share of them that was accepted. One tenant's requests of 200 tokens run one
/// after the other: "repetitive" are greedy texts of three words, "greedy" are greedy texts of all
/// words, and "other" are sampled with temperature 1.
/// Errors: those of System::start, TenantPool and fetch_metrics.
Result<nlohmann::json> measure_speculation(const SpeculateBenchConfig& config);

}  // namespace leasehold::bench
