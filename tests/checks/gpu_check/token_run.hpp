/// Runs given tokens through a small model and keeps the logits.
///
/// Errors: those of LocalModel.
#pragma once

#include <span>
#include <vector>

#include "tests/checks/local_model/local_model.hpp"

namespace leasehold::gpu_check {

using Logits = std::vector<float>;  // [n_vocab]

enum class RowsPerStep : std::uint8_t {
  All,  ///< One step.
  One,  ///< A step per token: a decode step, which can become a graph.
};

struct TokenRun {
  std::vector<Logits> logits;            ///< Logits of the last tokens, in order.
  std::uint64_t units_of_last_step = 0;  ///< Units that passed the gate: few in a graph.
};

/// The options for `n_tokens` tokens of one sequence. A null `placement` means the CPU.
LocalOptions options_for(const std::string& model, std::size_t n_tokens, LocalPlacement* placement);

/// Returns the logits of the last `n_wanted` tokens.
Result<TokenRun> run_tokens(const LocalOptions& options, std::span<const TokenId> tokens,
                            std::size_t n_wanted, RowsPerStep rows);

/// The number of logits whose bits differ.
std::size_t count_differing(const std::vector<Logits>& a, const std::vector<Logits>& b);

}  // namespace leasehold::gpu_check
