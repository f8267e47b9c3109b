/// Gives rows to proposed tokens in a step, and measures what they gain and cost.
///
/// The engine may propose tokens that follow a decoding sequence. While no prompt waits for rows,
/// the proposals that ProposalLimit finds worth their cost get rows, and a step commits the
/// accepted proposals and one more token.
///
/// Invariant: a proposal takes a free block only. Nothing is evicted, requested from the broker or
/// preempted for it.
///
/// Pure: durations are arguments. Threads: one (the engine's).
#pragma once

#include <cstdint>
#include <vector>

#include "worker/schedule/memory/kv_allocator.hpp"
#include "worker/schedule/rows/proposal_limit.hpp"
#include "worker/schedule/running_sequences.hpp"
#include "worker/schedule/scheduler_types.hpp"
#include "worker/schedule/tenants/tenancies.hpp"

namespace leasehold {

class ProposalPlanner {
 public:
  ProposalPlanner(const SchedulerLimits& limits, const Tenancies& tenancies,
                  const RunningSequences& running, KvAllocator& kv)
      : limits_(limits), tenancies_(tenancies), running_(running), kv_(kv) {}

  /// The decoding sequences that may have proposals in the next step; `n_proposed` is the number of
  /// proposals worth a row, as far as known before the plan. Empty while a prompt is computed.
  StepPlan plan() const;
  /// Adds rows of proposals to a plan of `decode_rows` rows, and returns their number. Adds none
  /// while a prompt runs: prompt rows delay the streams already, and the time of the proposals
  /// could not be measured separately.
  std::uint32_t add_rows(StepPlan& plan, std::uint32_t decode_rows);
  /// Compares the sequence's proposals with the tokens drawn, and clears them. Also counts a
  /// proposal that got no row, because comparing it with the drawn token costs nothing.
  void note_drawn(const PlannedRows& part, const std::vector<DrawnToken>& drawn);
  /// Records the time spent on making proposals. It is added to the cost of the next proposals that
  /// get rows.
  void note_proposing(Duration took);
  /// Records the duration of a step. A step with proposals is charged with the time of making them,
  /// including the time in earlier steps that only prepared proposals.
  void note_duration(Duration step, const StepRows& rows);

  const ProposalCounters& counters() const { return counters_; }

 private:
  std::vector<PlannedRows*> proposing_parts(StepPlan& plan) const;
  std::uint32_t rows_in_step(const StepPlan& plan, std::uint32_t decode_rows) const;
  std::uint32_t worth(const Sequence& sequence, std::uint32_t decode_rows,
                      std::uint32_t proposed) const;

  const SchedulerLimits& limits_;
  const Tenancies& tenancies_;
  const RunningSequences& running_;
  KvAllocator& kv_;
  ProposalLimit limit_;
  ProposalCounters counters_;
  Duration uncharged_{};  // time of proposing since the last step with proposals
};

}  // namespace leasehold
