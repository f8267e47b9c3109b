/// Reference results of a model by another program or an independent computation, and the distance
/// of our results along the same tokens.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/checks/local_model/local_model.hpp"
#include "tests/support/plain_model.hpp"

namespace leasehold::testing {

struct OracleTop {
  TokenId token;
  double logit;
};
struct OracleStep {
  TokenId token;
  std::vector<OracleTop> top;  ///< The five largest logits, largest first.
};
struct OracleCase {
  std::vector<TokenId> prompt;
  std::vector<OracleStep> steps;

  /// All tokens before the last step's result.
  std::vector<TokenId> teacher_forced_tokens() const;
};

/// Reads NAME.json, or NAME with another ending, next to NAME.gguf.
std::vector<OracleCase> read_oracle(const std::string& model_path,
                                    std::string_view ending = ".json");

using Logits = std::vector<double>;  // [n_vocab]

/// Our logits from one forward pass with keys and values in F32; one entry per step of the case.
/// `adapters`: none, or the adapter of the text.
std::vector<Logits> teacher_forced_logits(const std::string& model_path, const OracleCase& one,
                                          std::function<void(ModelConfig&)> modify_config = {},
                                          Arithmetic arithmetic = Arithmetic::F32,
                                          const std::vector<LocalAdapter>& adapters = {});
std::vector<Logits> teacher_forced_logits(PlainModel& model, const OracleCase& one);

/// Agreement over all steps of an oracle.
struct Agreement {
  double worst_top = 0;    ///< Largest difference among the oracle's five logits.
  int decided = 0;         ///< Steps whose margin exceeds the tolerance.
  int wrong = 0;           ///< Decided, and another token is first.
  double worst_exact = 0;  ///< Largest difference of any logit from the plain computation.

  void compare(const OracleCase& one, const std::vector<Logits>& ours, double tolerance);
  void compare_exactly(const std::vector<Logits>& plain, const std::vector<Logits>& ours);
};

/// Tolerance of our sums against doubles; the measured distance is at most a quarter of it.
inline constexpr double kExactTolerance = 1e-4;

/// Checks the oracle's tolerance and the much smaller one of the plain computation.
inline bool holds(const Agreement& agreement, double tolerance) {
  return agreement.wrong == 0 && agreement.decided > 0 && agreement.worst_top <= tolerance &&
         agreement.worst_exact <= kExactTolerance;
}

}  // namespace leasehold::testing
