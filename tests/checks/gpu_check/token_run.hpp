/// Runs given tokens through a small model and keeps the logits, and reads the expected answers of
/// a model from another program.
///
/// Errors: those of LocalModel.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "tests/checks/local_model/local_model.hpp"
#include "worker/text/tokenizer/token_id.hpp"

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

/// Returns the logits of the last `n_wanted` tokens, under the first adapter if there is one.
Result<TokenRun> run_tokens(const LocalOptions& options, std::span<const TokenId> tokens,
                            std::size_t n_wanted, RowsPerStep rows);

/// The number of logits whose bits differ.
std::size_t count_differing(const std::vector<Logits>& a, const std::vector<Logits>& b);

/// One prompt of NAME.json, which is beside NAME.gguf.
struct OracleCase {
  std::vector<TokenId> prompt;
  std::vector<TokenId> answers;
  std::vector<double> margins;  ///< Per answer: its logit minus the second highest logit.

  /// The prompt and all answers but the last.
  std::vector<TokenId> tokens() const;
};

/// Errors: FileNotFound, FileCorrupt.
Result<std::vector<OracleCase>> read_oracle(const std::string& model_path);

}  // namespace leasehold::gpu_check
