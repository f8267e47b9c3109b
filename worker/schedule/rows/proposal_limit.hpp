/// Limits the proposed tokens of a step to those whose expected gain exceeds their cost.
///
/// A row for a proposal makes the step longer and gives a token if the proposal is right. With B
/// decoding sequences a step takes d(B) and gives B tokens, so a row that takes the time r costs B
/// · r / d(B) tokens. A proposal's row is computed when the probability that its token is right
/// exceeds this cost by the factor kMargin. d and r are moving averages over steps without prompt
/// rows: d over those without proposals, for each B, and r over those with proposals. Until r is
/// known few proposals are computed. An r that is not measured again decays, so that one slow step
/// does not end proposals for good.
///
/// One tenant's proposals delay the streams of others. While several tenants decode, proposals may
/// lengthen a step by at most kSharedStepShare. A draft model's passes are not limited; their time
/// counts as part of a proposal's cost.
///
/// The limit never changes a text, only how many steps compute it.
///
/// Pure: durations are arguments. Threads: one.
#pragma once

#include <cstdint>
#include <vector>

#include "common/clock.hpp"
#include "worker/schedule/rows/bounded_average.hpp"
#include "worker/schedule/rows/prefill_limit.hpp"

namespace leasehold {

/// The probability that a proposal for one sequence is right, as a moving average. Proposals
/// without a row count too, because comparing them with the drawn token costs nothing.
class Acceptance {
 public:
  /// Records that `right` successive proposals were drawn, then a token other than the proposal if
  /// `was_wrong`.
  void note(std::uint32_t right, bool was_wrong);
  double rate() const { return rate_; }

 private:
  double rate_ = 0.25;
};

class ProposalLimit {
 public:
  static constexpr double kSharedStepShare = 0.03;  ///< Share of a step's duration.
  /// Factor between the required probability and the cost.
  static constexpr double kMargin = 1.25;

  /// Rows for proposals in a step, at most `room`. 0: the step measures d. Before the first `note`
  /// it returns all of `room`. `shared`: several tenants decode.
  std::uint32_t rows(std::uint32_t decode_rows, bool shared, std::uint32_t room) const;
  /// The number of one sequence's proposals that are worth their cost, at most `most`. `repeats`: a
  /// rejected proposal costs the rows of the tokens drawn in its step once more.
  std::uint32_t worth(const Acceptance& acceptance, std::uint32_t decode_rows, std::uint32_t most,
                      bool repeats = false) const;

  /// Records the duration of a step. Zero is ignored.
  void note(Duration step, StepRows rows);

 private:
  static constexpr std::uint32_t kFirstRows = 4;
  // Steps with proposals and B decoding sequences between two measurements of d(B).
  static constexpr std::uint32_t kMeasureInterval = 64;

  struct DecodeStep {
    BoundedAverage ns;                 // d
    std::uint32_t since_measured = 0;  // steps with proposals since the last measurement
  };
  DecodeStep step_of(std::uint32_t decode_rows) const;

  std::vector<DecodeStep> steps_;  // by decode rows
  BoundedAverage row_ns_;          // r
  bool noted_ = false;
};

}  // namespace leasehold
