/// Limits the proposed tokens of a step to those that are worth their time.
///
/// A row for a proposal makes the step longer and gives a token if the proposal is right. With B
/// decoding sequences a step takes d(B) and gives B tokens, so a row of r costs B · r / d(B)
/// tokens. It is computed when the chance that its token is right is above that by a margin. d and
/// r are moving averages over steps without prompt rows: d of those without proposals, by B, r of
/// those with some. Until r is known few proposals are computed; an r that is not renewed decays,
/// so that one slow step does not end them.
///
/// One tenant's proposals delay the streams of others. While several tenants decode, proposals may
/// lengthen a step by at most kOthersShare. What a draft model reads is not limited; it raises the
/// cost of a proposal.
///
/// The limit never changes a text, only how many steps compute it.
///
/// Pure: durations are arguments. Threads: one.
#pragma once

#include <cstdint>
#include <vector>

#include "common/clock.hpp"
#include "worker/schedule/bounded_average.hpp"
#include "worker/schedule/prefill_limit.hpp"

namespace leasehold {

/// How likely a proposal for one sequence is right, by a moving average. Proposals count that were
/// not computed, too: comparing the drawn token with a proposal that got no row is free.
class Acceptance {
 public:
  /// `right` proposals in a row were drawn, and then another token, if `was_wrong`.
  void note(std::uint32_t right, bool was_wrong);
  double rate() const { return rate_; }

 private:
  double rate_ = 0.25;
};

class ProposalLimit {
 public:
  static constexpr double kOthersShare = 0.03;  ///< Of the time of a step.
  static constexpr double kMargin = 1.25;       ///< Of the chance above the cost.

  /// Rows for proposals in a step, at most `room`. 0: the step measures d. Until the first `note`
  /// that is all of `room`. `shared`: several tenants decode.
  std::uint32_t rows(std::uint32_t decode_rows, bool shared, std::uint32_t room) const;
  /// The proposals of one sequence that are worth it, at most `most`.
  std::uint32_t worth(const Acceptance& acceptance, std::uint32_t decode_rows,
                      std::uint32_t most) const;

  /// The duration of a step that ran. Zero says nothing.
  void note(Duration step, StepRows rows);

 private:
  static constexpr std::uint32_t kFirstRows = 4;
  // Steps of B decoding sequences with proposals, between two that measure d(B).
  static constexpr std::uint32_t kMeasureInterval = 64;

  struct DecodeStep {
    BoundedAverage ns;                 // d
    std::uint32_t since_measured = 0;  // such steps with proposals
  };
  DecodeStep step_of(std::uint32_t decode_rows) const;

  std::vector<DecodeStep> steps_;  // by decode rows
  BoundedAverage row_ns_;          // r
  bool noted_ = false;
};

}  // namespace leasehold
