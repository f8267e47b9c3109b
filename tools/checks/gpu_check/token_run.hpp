/// Runs given tokens through a small model and keeps the logits.
///
/// Errors: those of LocalModel.
#pragma once

#include <span>
#include <vector>

#include "tools/local_model/local_model.hpp"

namespace leasehold::gpu_check {

using Logits = std::vector<float>;  // [n_vocab]

enum class RowsPerStep : std::uint8_t {
  All,  ///< All rows in one step.
  One,  ///< One decode step per token, which can become a graph.
};

struct TokenRun {
  std::vector<Logits> logits;  ///< Logits of the last tokens, in order.
  /// Units that passed the gate in the last step; a graph has few.
  std::uint64_t units_of_last_step = 0;
};

/// Options for `n_tokens` tokens of one sequence. Null `placement`: the CPU.
LocalOptions options_for(const std::string& model, std::size_t n_tokens, LocalPlacement* placement);

/// Returns the logits of the last `n_wanted` tokens.
Result<TokenRun> run_tokens(const LocalOptions& options, std::span<const TokenId> tokens,
                            std::size_t n_wanted, RowsPerStep rows);

/// Counts logits that differ in at least one bit.
std::size_t count_differing(const std::vector<Logits>& a, const std::vector<Logits>& b);

}  // namespace leasehold::gpu_check
