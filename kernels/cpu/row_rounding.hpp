/// The rows of x that int8 matmuls read: computed by a norm or SwiGLU if there is one, then
/// rounded.
///
/// Few rows are rounded by each thread for itself in a prologue of the matmul, many in a launch of
/// their own.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "kernels/cpu/cpu_resources.hpp"
#include "kernels/rounded_rows.hpp"

namespace leasehold {

/// How the rows of a projection are computed and rounded, in parts of `columns`. The projection
/// outlives it.
struct RoundingPlan {
  const ProjectionArgs& args;
  std::uint32_t n_rows;
  std::uint32_t n_in;
  std::uint32_t block;
  std::uint32_t columns;
  std::uint64_t macs_per_element;
  LaunchSite site;

  RoundingPlan(const ProjectionArgs& projection, std::uint32_t rows);
  const MatmulArgs& first() const { return args.matmuls.front(); }
  /// True if a product's output begins in memory from which the rows are computed.
  bool is_overwritten() const;
  std::uint32_t parts_per_row() const { return tiles_for(n_in, columns); }
  std::uint32_t n_parts() const { return n_rows * parts_per_row(); }
  std::uint64_t macs() const { return std::uint64_t{n_rows} * n_in * macs_per_element; }
};

/// Rounded rows from `first` on: rows that all threads share, or a thread's own.
struct InputRows {
  RoundedRows& rows;
  std::size_t first;

  RoundedRow row(std::size_t i) const { return rows.row(first + i); }
};

class RowRounding {
 public:
  /// The resources outlive it.
  explicit RowRounding(CpuResources& cpu);

  /// Computes and rounds the rows of the plan, then calls `tile(permit, rows, index)` for each
  /// tile.
  template <class Tile>
  LaunchStatus run(const LaunchContext& context, const RoundingPlan& plan, const TilePasses& tiles,
                   Tile&& tile) {
    const UnitLabel matmul_label = label(context, plan.first().site);
    const auto unit = [&](const LaunchPermit& permit, InputRows rows, std::uint32_t index) {
      tile(permit, rows, index);
      cpu_.kernels.end_int8_unit();
    };
    if (should_each_thread_round(plan)) {
      expects(!plan.is_overwritten(), "what a late prologue reads, tiles do not write");
      const Prologue prologue{label(context, plan.site),
                              [&](const LaunchPermit& permit, std::uint32_t thread) {
                                round(permit, plan, {0, plan.n_parts()}, thread, own_rows(thread));
                              }};
      return cpu_.launcher.run_after(
          prologue, context, matmul_label, tiles,
          [&](const LaunchPermit& permit, std::uint32_t thread, std::uint32_t index) {
            unit(permit, own_rows(thread), index);
          });
    }
    LaunchStatus status = round_shared(context, plan);
    if (!status.none_live())
      status &= cpu_.launcher.run(context, matmul_label, tiles,
                                  [&](const LaunchPermit& permit, std::uint32_t,
                                      std::uint32_t index) { unit(permit, {rounded_, 0}, index); });
    return status;
  }
  void clear();

 private:
  /// Most rows that a thread rounds for itself.
  static constexpr std::uint32_t kOwnRows = 8;

  InputRows own_rows(std::uint32_t thread) {
    return {own_rounded_, std::size_t{thread} * kOwnRows};
  }
  bool should_each_thread_round(const RoundingPlan& plan) const;
  const float* input_part(const LaunchPermit& permit, const RoundingPlan& plan, std::uint32_t i,
                          Span32 columns, std::uint32_t thread);
  void round(const LaunchPermit& permit, const RoundingPlan& plan, Span32 parts,
             std::uint32_t thread, InputRows to_rows);
  LaunchStatus round_shared(const LaunchContext& context, const RoundingPlan& plan);

  CpuResources& cpu_;
  std::size_t stride_;
  std::vector<float> computed_rows_;  // [threads, stride_]: a row before it is rounded
  RoundedRows rounded_;               // of the running matmul
  RoundedRows own_rounded_;           // of the running matmul, [threads, kOwnRows]
  std::uint32_t used_rounded_ = 0;    // rows of rounded_ written since the last clear()
};

}  // namespace leasehold
