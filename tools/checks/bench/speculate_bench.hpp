/// What proposed tokens gain on a text that repeats itself, and cost on one that does not.
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
  std::string draft_model;       ///< The worker's --draft-model; empty: n-grams.
  std::uint32_t tokens = 4'000;  ///< Of each text in each round.
  std::uint32_t rounds = 5;      ///< Each with and without proposals, in turn.
};

/// {"speculate": {"proposals", "threads", "draft_model", "repetitive": {"without_tokens_s",
/// "with_tokens_s", "ratio", "proposed", "acceptance"}, "greedy": {…}, "other": {…}}}: medians over
/// the rounds, of the ratio too; proposed tokens and the share of them that were accepted, over all
/// rounds. One tenant's requests of 200 tokens run one after the other: "repetitive" are greedy
/// texts of three words, "greedy" of all words, "other" are drawn with temperature 1.
/// Errors: those of System::start, TenantPool and fetch_metrics.
Result<nlohmann::json> measure_speculation(const SpeculateBenchConfig& config);

}  // namespace leasehold::bench
