#include "kernels/cpu/row_rounding.hpp"

#include <algorithm>

namespace leasehold {
namespace {

/// Columns of a gated row that are rounded at once: a whole number of blocks of 32 or 256.
constexpr std::uint32_t kGateColumns = 1024;
/// The cost of one more barrier between threads, including the cache lines that they exchange.
/// Assumed to be 2 µs.
constexpr std::uint64_t kBarrierMacs = 16'000;

}  // namespace

RoundingPlan::RoundingPlan(const ProjectionArgs& projection, std::uint32_t rows)
    : args(projection),
      n_rows(rows),
      n_in(first().weight.n_in),
      block(group_format(first().weight.type).elements),
      columns(n_in),
      macs_per_element(kMacsPerElement),
      site(first().site) {
  if (args.norm != nullptr) {
    macs_per_element = 2 * kMacsPerElement;
    site = args.norm->site;
  }
  if (args.swiglu != nullptr) {
    macs_per_element = kMacsPerExp + kMacsPerElement;
    site = LaunchSite::SwiGlu;
    columns = std::min(n_in, kGateColumns);
  }
}

bool RoundingPlan::is_overwritten() const {
  const std::size_t source_rows = first().select.empty() ? n_rows : first().select.back() + 1;
  const auto is_part_of = [&](const float* source, const float* out) {
    return !std::less<>()(out, source) && std::less<>()(out, source + source_rows * n_in);
  };
  return std::ranges::any_of(args.matmuls, [&](const MatmulArgs& matmul) {
    if (args.norm != nullptr) return is_part_of(args.norm->x, matmul.out);
    return is_part_of(first().x, matmul.out) ||
           (args.swiglu != nullptr && is_part_of(args.swiglu->up, matmul.out));
  });
}

RowRounding::RowRounding(CpuResources& cpu)
    : cpu_(cpu),
      stride_(thread_row_floats(cpu.limits)),
      computed_rows_(stride_ * cpu.launcher.threads()),
      rounded_(max_matmul_inputs(cpu.limits), cpu.limits.max_width),
      own_rounded_(kOwnRows * cpu.launcher.threads(), cpu.limits.max_width) {}

/// Returns columns of row i of x. A norm or SwiGLU computes them into the thread's own row.
const float* RowRounding::input_part(const LaunchPermit& permit, const RoundingPlan& plan,
                                     std::uint32_t i, Span32 columns, std::uint32_t thread) {
  const std::size_t at = selected_index(plan.first(), i) * std::size_t{plan.n_in} + columns.begin;
  float* const own = computed_rows_.data() + thread * stride_;
  if (const RmsNormArgs* norm = plan.args.norm) {
    cpu_.kernels.rms_norm_row({.x = norm->x + at,
                               .weight = permit.open(norm->weight),
                               .out = own,
                               .width = plan.n_in,
                               .epsilon = norm->epsilon,
                               .scale = norm->scale,
                               .is_centered = norm->is_centered});
    return own;
  }
  if (const SwiGluArgs* swiglu = plan.args.swiglu) {
    const std::uint32_t n = columns.end - columns.begin;
    std::copy_n(swiglu->gate + at, n, own);
    cpu_.kernels.swiglu(swiglu->activation, own, swiglu->up + at, n);
    return own;
  }
  return plan.first().x + at;
}

void RowRounding::round(const LaunchPermit& permit, const RoundingPlan& plan, Span32 parts,
                        std::uint32_t thread, InputRows to_rows) {
  for (std::uint32_t part = parts.begin; part < parts.end; ++part) {
    const std::uint32_t row = part / plan.parts_per_row();
    const Span32 columns = tile_span(part % plan.parts_per_row(), plan.columns, plan.n_in);
    const float* x = input_part(permit, plan, row, columns, thread);
    const RoundedRowBuffer to = to_rows.rows.buffer(to_rows.first + row);
    cpu_.kernels.round_row(x, columns.end - columns.begin, plan.block,
                           {to.q + columns.begin, to.scale + columns.begin / plan.block,
                            to.sums + columns.begin / kInt8Strip});
  }
}

/// True if threads lose less time when each rounds all rows than when they wait for each other.
bool RowRounding::should_each_thread_round(const RoundingPlan& plan) const {
  const std::uint32_t threads = cpu_.launcher.threads();
  const std::uint64_t repeated = plan.macs() * (threads - 1) / threads;
  return plan.n_rows <= kOwnRows && plan.macs() <= kTileMacs && repeated <= kBarrierMacs;
}

LaunchStatus RowRounding::round_shared(const LaunchContext& context, const RoundingPlan& plan) {
  used_rounded_ = std::max(used_rounded_, plan.n_rows);
  const std::uint32_t per_tile = items_per_tile(plan.columns * plan.macs_per_element);
  return cpu_.launcher.run(
      context, label(context, plan.site), tiles_for(plan.n_parts(), per_tile),
      [&](const LaunchPermit& permit, std::uint32_t thread, std::uint32_t index) {
        round(permit, plan, tile_span(index, per_tile, plan.n_parts()), thread, {rounded_, 0});
      });
}

void RowRounding::clear() {
  rounded_.clear(std::exchange(used_rounded_, 0));
  own_rounded_.clear(std::size_t{kOwnRows} * cpu_.launcher.threads());
  std::ranges::fill(computed_rows_, 0.0F);
}

}  // namespace leasehold
