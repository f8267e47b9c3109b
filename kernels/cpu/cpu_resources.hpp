/// What the operators of the CPU backend share: limits, the kernels of the SIMD path, the launcher.
///
/// Threads: the engine's, except `kernels`, which every thread calls.
#pragma once

#include "kernels/cpu/launcher.hpp"
#include "kernels/cpu/row_kernels.hpp"
#include "kernels/cpu/tiling.hpp"

namespace leasehold {

/// Floats of a row in a thread's scratch: the widest row and a gap of at least a cache line, so
/// that threads do not share lines.
constexpr std::size_t thread_row_floats(const BackendLimits& limits) {
  return (std::size_t{limits.max_width} + 31) / 16 * 16;
}

struct CpuResources {
  BackendLimits limits;
  const RowKernels& kernels;
  Launcher launcher;

  /// Calls `part(permit, span)` for tiles of `n` items that cost `macs_each`.
  template <class Part>
  LaunchStatus each_part(const LaunchContext& context, UnitLabel label, std::size_t n,
                         std::uint64_t macs_each, Part&& part) {
    expect_within_limits(limits, context);
    expects(n <= UINT32_MAX, "a step's activations are counted in 32 bits");
    const std::uint32_t per_tile = items_per_tile(macs_each);
    return launcher.run(context, label, tiles_for(n, per_tile),
                        [&](const LaunchPermit& permit, std::uint32_t, std::uint32_t tile) {
                          part(permit, tile_span(tile, per_tile, static_cast<std::uint32_t>(n)));
                        });
  }
  /// Calls `row(permit, r)` for each row of the step.
  template <class Row>
  LaunchStatus each_row(const LaunchContext& context, UnitLabel label, std::uint64_t macs_per_row,
                        Row&& row) {
    return each_part(context, label, context.rows.size(), macs_per_row,
                     [&](const LaunchPermit& permit, Span32 rows) {
                       for (std::uint32_t r = rows.begin; r < rows.end; ++r) row(permit, r);
                     });
  }
};

}  // namespace leasehold
