/// Limits the prompt rows of a step, so that a prompt delays running streams by at most a share of
/// the time that their step takes without it, and the first token of another prompt by about
/// kMostPromptStep. Rows are counted as the work that they are (row_work.hpp), here and below.
///
/// The time of a step is modelled as d + r · (prompt rows). d is the median of the last three steps
/// that only decoded, r comes from moving averages of steps with both. The limit is at most twice
/// the rows of the last step that counted for r, or kFirstRows if that is more, so that a wrong r,
/// measured over few rows, does not fill the budget. What rounding a limit down leaves of a row is
/// added to the next one.
///
/// A step measures d by decoding alone after kMeasureInterval steps with prompt rows. It does so
/// after kLeastInterval of them if two in succession differ from the model: the machine is faster
/// or slower, or other streams run. If it finds another d, the next one or two steps measure too,
/// so that the median has it. Steps that differ count for r only if fewer than kLeastInterval steps
/// have passed since d was measured.
///
/// A step without decode rows is modelled as r' · (prompt rows), with moving averages of its own.
/// Its limit is what kMostPromptStep affords, and at least kFirstRows.
///
/// The limit never changes a text, only when its prompt is computed.
///
/// Pure: durations are arguments. Threads: one.
#pragma once

#include <cstdint>
#include <optional>

#include "common/clock.hpp"
#include "worker/schedule/bounded_average.hpp"
#include "worker/schedule/recent_median.hpp"

namespace leasehold {

struct StepRows {
  std::uint32_t decode = 0;
  std::uint32_t prefill = 0;   ///< Their work.
  std::uint32_t proposed = 0;  ///< Behind decode rows.
};

class PrefillLimit {
 public:
  /// A step with prompt rows takes about 1.4 times as long as one without. One row is always
  /// allowed.
  static constexpr double kDelayShare = 0.4;
  /// A step of prompt rows alone takes about as long at most: the next request waits for it.
  static constexpr Duration kMostPromptStep = std::chrono::milliseconds(200);
  /// The most steps with prompt rows between two that only decode and measure d.
  static constexpr std::uint32_t kMeasureInterval = 64;
  /// The fewest, except where a measurement is repeated.
  static constexpr std::uint32_t kLeastInterval = 8;

  /// The prompt rows of the next step, at most `budget`. 0: the step measures d. Until the first
  /// `note` it is the whole budget.
  std::uint32_t rows(std::uint32_t decode_rows, std::uint32_t budget) const;

  /// The duration of a step that ran. Zero says nothing.
  void note(Duration step, StepRows rows);

  /// r; nothing until it is measured.
  std::optional<double> row_ns() const;

 private:
  static constexpr std::uint32_t kFirstRows = 16;  // the limit is not lower because few rows ran

  void note_decode(double ns);
  void note_mixed(double ns, std::uint32_t rows);
  void note_alone(double ns, std::uint32_t rows);
  std::uint32_t rows_alone(std::uint32_t budget) const;
  bool is_expected(double ns, std::uint32_t rows) const;
  double affordable_rows() const;

  RecentMedian decode_ns_;     // d
  BoundedAverage mixed_ns_;    // of a step with both, above d
  BoundedAverage mixed_rows_;  // prompt rows of such a step; r = mixed_ns_ / mixed_rows_
  BoundedAverage alone_ns_;    // of a step with prompt rows only
  BoundedAverage alone_rows_;  // r' = alone_ns_ / alone_rows_
  double allowed_rows_ = kFirstRows;
  double left_of_row_ = 0;  // by limits that were rounded down
  std::uint32_t since_measured_ = 0;
  std::uint32_t measured_again_ = 0;  // times in succession
  std::uint32_t unexpected_ = 0;      // steps with both, in succession
  bool noted_ = false;
};

}  // namespace leasehold
