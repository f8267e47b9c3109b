/// Expected answers of a model from another program: NAME.json beside NAME.gguf.
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
  std::vector<double> margins;  ///< Per answer: its logit minus the second highest logit.

  /// The prompt and all answers but the last.
  std::vector<TokenId> tokens() const;
};

Result<std::vector<OracleCase>> read_oracle(const std::string& model_path);

}  // namespace leasehold::gpu_check
