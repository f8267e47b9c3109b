/// The largest logits of each row of a step, found on the card and copied to the host.
///
/// Threads: the engine's.
#pragma once

#include "kernels/backend.hpp"
#include "kernels/cuda/launcher.hpp"
#include "kernels/cuda/plan/plan_context.hpp"

namespace leasehold::cuda {

class LargestLogits {
 public:
  static Result<LargestLogits> create(const Context& context, Launcher& launcher,
                                      const BackendLimits& limits);

  /// Starts a step with `n_rows` rows of logits.
  void begin(std::uint32_t n_rows);
  /// Plans the search of at most `n_rows` rows on a card of n_sms SMs. `counters` has one counter
  /// per row, zero before and after.
  KernelLaunch plan(const PlanContext& context, const MatmulArgs& head, std::uint32_t n_rows,
                    std::uint32_t* counters, std::uint32_t n_sms) const;
  /// Enqueues the copy to the host.
  CUresult copy(Launcher& launcher) const;
  /// Records that the step finds the largest logits.
  void set_found(bool is_found) { is_found_ = is_found; }
  bool is_found() const { return is_found_; }
  /// The result for a row; nullopt if the step found none.
  std::optional<TopLogits> row(std::uint32_t row) const;
  void clear(Launcher& launcher) const;

 private:
  explicit LargestLogits(std::uint32_t max_rows) : max_rows_(max_rows) {}

  std::uint32_t max_rows_;
  DeviceBuffer found_;  // the layout of rows_at
  DeviceBuffer keys_;   // [max_rows_, kMaxLogitParts, kMaxCandidates]
  PinnedBuffer host_found_;
  std::uint32_t n_rows_ = 0;  // of the current or last step
  bool is_found_ = false;
};

}  // namespace leasehold::cuda
