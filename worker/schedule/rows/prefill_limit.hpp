/// Limits the prompt rows of a step, so that a prompt delays running streams by at most a share of
/// the time that their step takes without it, and the first token of another prompt by about
/// kMostPromptStep. Rows are counted by their work (row_work.hpp), here and below.
///
/// The time of a step is modelled as d + r · (prompt rows). d is the median of the last three steps
/// that only decoded; r comes from moving averages of steps with both decode and prompt rows. The
/// limit is at most twice the rows of the last step that counted for r, or kFirstRows if that is
/// more, so that an inaccurate r, measured over few rows, does not fill the budget. The fraction of
/// a row that rounding a limit down removes is added to the next limit.
///
/// Short prompts of the tenants whose streams they delay may take longer: kShortShare times as long
/// as a step for each that waits per stream, up to a step of kMostPromptStep.
///
/// After kMeasureInterval steps with prompt rows, one step only decodes and measures d. This step
/// runs already after kLeastInterval such steps if two steps in succession differ from the model,
/// because the machine became faster or slower or other streams run. If the measured d differs, the
/// next one or two steps measure d too, so that the median follows. Steps that differ from the
/// model count for r only if fewer than kLeastInterval steps have passed since d was measured.
///
/// A step without decode rows is modelled as r' · (prompt rows), where r' comes from separate
/// moving averages. Its limit is the number of rows that fit in kMostPromptStep, and at least
/// kFirstRows.
///
/// The limit never changes a text, only when its prompt is computed.
///
/// Pure: durations are arguments. Threads: one.
#pragma once

#include <cstdint>
#include <optional>

#include "common/clock.hpp"
#include "worker/schedule/rows/bounded_average.hpp"
#include "worker/schedule/rows/recent_median.hpp"
#include "worker/schedule/rows/short_prompts.hpp"

namespace leasehold {

struct StepRows {
  std::uint32_t decode = 0;
  std::uint32_t prefill = 0;   ///< The work of the prompt rows.
  std::uint32_t proposed = 0;  ///< Rows of proposals, after decode rows.
};

class PrefillLimit {
 public:
  /// A step with prompt rows takes at most about 1.4 times as long as one without, except that one
  /// row is always allowed.
  static constexpr double kDelayShare = 0.4;
  /// The share of short prompts, for one of them per stream: one beside eight streams doubles a
  /// step. With less, most streams of a burst have ended before its last prompts are computed.
  static constexpr double kShortShare = 8;
  /// A step of prompt rows alone takes at most about this long, because the next request waits for
  /// it.
  static constexpr Duration kMostPromptStep = std::chrono::milliseconds(200);
  /// The most steps with prompt rows between two measurements of d.
  static constexpr std::uint32_t kMeasureInterval = 64;
  /// The fewest steps between two measurements of d, unless a measurement is repeated.
  static constexpr std::uint32_t kLeastInterval = 8;

  /// The prompt rows of the next step, at most `budget`. 0: the step measures d. Before the first
  /// `note` the limit is the whole budget.
  std::uint32_t rows(std::uint32_t decode_rows, std::uint32_t budget,
                     const ShortPrompts& prompts = {}) const;

  /// Records the duration of a step. Zero is ignored.
  void note(Duration step, StepRows rows);

  /// Returns r; nothing before the first measurement.
  std::optional<double> row_ns() const;

 private:
  // the limit never falls below this because recent steps had few rows
  static constexpr std::uint32_t kFirstRows = 16;

  void note_decode(double ns);
  void note_mixed(double ns, std::uint32_t rows);
  void note_alone(double ns, std::uint32_t rows);
  std::uint32_t prefill_only_rows(std::uint32_t budget) const;
  bool is_expected(double ns, std::uint32_t rows) const;
  double rows_in(double ns) const;
  double most_rows() const;
  double short_rows(const ShortPrompts& prompts) const;

  RecentMedian decode_ns_;          // d
  BoundedAverage mixed_ns_;         // duration above d of a step with decode and prompt rows
  BoundedAverage mixed_rows_;       // prompt rows of such a step; r = mixed_ns_ / mixed_rows_
  BoundedAverage prefill_only_ns_;  // duration of a step with prompt rows only
  BoundedAverage alone_rows_;       // r' = prefill_only_ns_ / alone_rows_
  double last_rows_ = 0;            // of the last step that counted for r
  double allowed_rows_ = kFirstRows;
  double row_fraction_ = 0;  // fractions of rows from rounding limits down
  std::uint32_t since_measured_ = 0;
  std::uint32_t repeated_measurements_ = 0;  // repeated measurements in succession
  std::uint32_t unexpected_ = 0;             // steps in succession that differ from the model
  bool noted_ = false;
};

}  // namespace leasehold
