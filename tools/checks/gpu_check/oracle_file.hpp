/// What another program answered for a model: NAME.json beside NAME.gguf.
///
/// Errors: FileNotFound, FileCorrupt.
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"
#include "worker/text/tokenizer/token_id.hpp"

namespace leasehold::gpu_check {

struct OracleCase {
  std::vector<TokenId> prompt;
  std::vector<TokenId> answers;
  std::vector<double> margins;  ///< Of each answer: how far its logit is above the next.

  /// All that is read before the last answer.
  std::vector<TokenId> tokens() const;
};

Result<std::vector<OracleCase>> read_oracle(const std::string& model_path);

}  // namespace leasehold::gpu_check
