/// The rows of a step: how many the next sequence may get, and how many of each kind were planned.
///
/// Decode rows take from the token budget first, and prompt rows get the rest, up to the work that
/// PrefillLimit allows. Scavengers get rows after all other sequences: the whole budget in a step
/// without other rows, and otherwise what ScavengerShare allows.
///
/// Pure: durations are arguments. Threads: one (the engine's).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "common/clock.hpp"
#include "worker/schedule/rows/prefill_limit.hpp"
#include "worker/schedule/rows/scavenger_share.hpp"
#include "worker/schedule/scheduler_types.hpp"

namespace leasehold {

class RowBudget {
 public:
  /// `limits` outlives the object.
  explicit RowBudget(const SchedulerLimits& limits) : limits_(limits) {}

  /// Forgets the rows of the last plan.
  void begin_plan() {
    left_ = limits_.token_budget;
    planned_ = {};
  }
  /// The next rows belong to scavengers.
  void begin_scavengers() {
    if (left_ < limits_.token_budget) left_ = std::min(left_, scavengers_.rows());
  }

  /// Rows that are not planned yet.
  std::uint32_t left() const { return left_; }
  /// The most work of the prompt rows to plan next. 0: the step computes no prompt.
  std::uint32_t prompt_work(const ShortPrompts& prompts) const {
    constexpr std::uint32_t kAnyWork = ~std::uint32_t{0};
    return prefill_.rows(planned_.decode, kAnyWork, prompts);
  }

  void add_decode(std::uint32_t rows) {
    take(rows);
    planned_.decode += rows;
  }
  void add_prompt(std::uint32_t rows, std::uint64_t work) {
    take(rows);
    planned_.prefill += static_cast<std::uint32_t>(work);
  }
  /// Rows of proposals come in addition to the token budget.
  void add_proposed(std::uint32_t rows) { planned_.proposed += rows; }
  const StepRows& planned() const { return planned_; }

  /// Charges committed rows to the share of scavengers.
  void note_committed(std::uint32_t rows, bool is_scavenger) {
    if (is_scavenger) {
      scavengers_.note_scavengers(rows);
    } else {
      scavengers_.note_others(rows);
    }
  }
  /// Records the duration of the planned step. A step with proposals says nothing of prompt rows.
  void note_duration(Duration step) {
    if (planned_.proposed == 0) prefill_.note(step, planned_);
  }
  /// The time of a prompt row; nothing before the first measurement.
  std::optional<double> row_ns() const { return prefill_.row_ns(); }

 private:
  void take(std::uint32_t rows) { left_ -= std::min(left_, rows); }

  const SchedulerLimits& limits_;
  PrefillLimit prefill_;
  ScavengerShare scavengers_;
  StepRows planned_;
  std::uint32_t left_ = 0;
};

}  // namespace leasehold
