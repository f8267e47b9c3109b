/// Limits the prompt rows of a step, so that a prompt delays running streams by at most a share of
/// the time that their step takes without it.
///
/// The time of a step is modelled as d + r · (prompt rows): d is measured in steps that only
/// decode, r in steps with both. Both come from moving averages. The limit is at most twice the
/// rows of the last such step, so that a wrong r, measured over few rows, does not fill the budget.
/// It never changes a text, only when its prompt is computed.
///
/// Pure: durations are arguments. Threads: one.
#pragma once

#include <cstdint>
#include <optional>

#include "common/clock.hpp"
#include "worker/schedule/bounded_average.hpp"

namespace leasehold {

struct StepRows {
  std::uint32_t decode = 0;
  std::uint32_t prefill = 0;
  std::uint32_t proposed = 0;  ///< Behind decode rows.
};

class PrefillLimit {
 public:
  /// A step with prompt rows takes about 1.38 times as long as one without, by moving averages. One
  /// row is always allowed.
  static constexpr double kDelayShare = 0.38;
  /// Steps with prompt rows between two that only decode and measure d.
  static constexpr std::uint32_t kMeasureInterval = 64;

  /// The prompt rows of the next step, at most `budget`. 0: the step measures d. Until the first
  /// `note` it is the whole budget.
  std::uint32_t rows(std::uint32_t decode_rows, std::uint32_t budget) const;

  /// The duration of a step that ran. Zero says nothing.
  void note(Duration step, StepRows rows);

  /// r; nothing until it is measured.
  std::optional<double> row_ns() const;

 private:
  static constexpr std::uint32_t kFirstRows = 16;  // the limit is not lower because few rows ran

  void note_mixed(double ns, std::uint32_t rows);
  std::uint32_t affordable_rows() const;

  BoundedAverage decode_ns_;   // d
  BoundedAverage mixed_ns_;    // of a step with both, above d
  BoundedAverage mixed_rows_;  // prompt rows of such a step; r = mixed_ns_ / mixed_rows_
  std::uint32_t most_rows_ = kFirstRows;
  std::uint32_t since_measured_ = 0;
  bool noted_ = false;
};

}  // namespace leasehold
