/// Rules that every backend shares besides arithmetic: labels, preconditions, and copies.
#pragma once

#include <algorithm>

#include "common/expects.hpp"
#include "ipc/segment/thread_gate.hpp"
#include "kernels/backend.hpp"
#include "kernels/numerics/expert_routing.hpp"
#include "kernels/quant/row_group.hpp"

namespace leasehold {

/// A copy reaches tenant memory unless it loads weights.
inline Touches touches_of(const CopyInArgs& args) {
  return args.site == LaunchSite::WeightLoad ? Touches::WeightsAndScratch : Touches::TenantMemory;
}

/// A copy does not name its target's owner, so a copy into tenant memory stops when any sequence of
/// its gate set dies. Weights belong to the engine's lease, which the gate checks.
inline bool may_copy(const LaunchContext& context, const CopyInArgs& args,
                     const LaunchPermit& permit) {
  return args.site == LaunchSite::WeightLoad || permit.live() == context.gates->all();
}

/// Blocks are copied in pieces of at most `piece_bytes`, each of them a unit.
struct CopyPiece {
  Leased<std::byte> to;
  Leased<const std::byte> from;
  std::uint64_t size_bytes = 0;
};
inline std::uint64_t copy_pieces_per_block(const CopyBlocksArgs& args, std::uint64_t piece_bytes) {
  return (args.block_size_bytes + piece_bytes - 1) / piece_bytes;
}
inline std::uint32_t copy_piece_count(const CopyBlocksArgs& args, std::uint64_t piece_bytes) {
  return static_cast<std::uint32_t>(args.copies.size() * copy_pieces_per_block(args, piece_bytes));
}
inline CopyPiece copy_piece_of(const CopyBlocksArgs& args, std::uint32_t piece,
                               std::uint64_t piece_bytes) {
  const std::uint64_t per_block = copy_pieces_per_block(args, piece_bytes);
  const LeasedCopy& copy = args.copies[piece / per_block];
  const std::uint64_t at = piece % per_block * piece_bytes;
  return {.to = copy.to + static_cast<std::ptrdiff_t>(at),
          .from = copy.from + static_cast<std::ptrdiff_t>(at),
          .size_bytes = std::min(piece_bytes, args.block_size_bytes - at)};
}

inline UnitLabel label(const LaunchContext& context, LaunchSite site,
                       Touches touches = Touches::WeightsAndScratch) {
  return {.site = site, .layer = context.layer, .touches = touches};
}

/// The number of rows that an operator with a selection uses.
template <class Args>
std::uint32_t selected_rows(const LaunchContext& context, const Args& args) {
  return static_cast<std::uint32_t>(args.select.empty() ? context.rows.size() : args.select.size());
}

/// The row of x for row i of out.
inline std::uint32_t selected_index(const MatmulArgs& args, std::uint32_t i) {
  return args.select.empty() ? i : args.select[i];
}
inline const float* selected_row(const MatmulArgs& args, std::uint32_t i) {
  return args.x + std::size_t{selected_index(args, i)} * args.weight.n_in;
}

/// The row of x for an item of an expert matmul.
inline const float* item_row(const ExpertMatmulArgs& args, std::uint32_t item) {
  return args.x + std::size_t{item / args.items_per_x} * args.weight.n_in;
}

/// The rows of x that an expert matmul reads.
inline std::uint32_t expert_inputs(const ExpertMatmulArgs& args) {
  return args.n_items / args.items_per_x;
}

/// The most rows of x that any matmul reads in one step.
inline std::uint32_t max_matmul_inputs(const BackendLimits& limits) {
  return limits.max_rows * std::max(limits.n_experts_used, 1u);
}

/// A vector that the model may lack, or null; valid while the permit is.
inline const float* open_or_null(const LaunchPermit& permit, Leased<const float> vector) {
  return vector ? permit.open(vector) : nullptr;
}

/// The vectors of a routing, valid while the permit is.
inline RoutingVectors open_vectors(const LaunchPermit& permit, const ExpertRoutingArgs& args) {
  return {.bias = open_or_null(permit, args.selection_bias),
          .scales = open_or_null(permit, args.expert_scales)};
}

/// The factor of a norm's results, which the model may lack.
inline float out_scale_of(const LaunchPermit& permit, const RmsNormArgs& args) {
  return args.out_scale ? *permit.open(args.out_scale) : 1.0F;
}

/// The first element of the weight of vector `i` of a launch.
inline std::size_t weight_offset(const RmsNormArgs& args, std::size_t i) {
  return args.has_own_weights ? i % args.vectors_per_row * args.width : 0;
}

/// Row `index` of a matrix, valid while the permit is.
inline const std::byte* matrix_row(const LaunchPermit& permit, const WeightMatrix& matrix,
                                   std::uint32_t index) {
  return permit.open(matrix.data) + index * row_size_bytes(matrix.type, matrix.n_in);
}

/// Group `index` of a matrix, valid while the permit is.
inline const std::byte* matrix_group(const LaunchPermit& permit, const WeightMatrix& matrix,
                                     std::uint32_t index) {
  return permit.open(matrix.data) + index * row_group_bytes(matrix.type, matrix.n_in);
}

/// Writes row `index` of a matrix of row groups as floats.
inline void dequantize_grouped(const LaunchPermit& permit, const WeightMatrix& matrix,
                               std::uint32_t index, float* out) {
  dequantize_group_row(matrix.type, matrix_group(permit, matrix, index / kGroupRows),
                       index % kGroupRows, out, matrix.n_in);
}

/// out (+)= dot + bias
inline void store_product(const MatmulArgs& args, float& out, float dot, const float* bias) {
  const float product = bias != nullptr ? dot + *bias : dot;
  out = args.accumulate ? out + product : product;
}

/// Stores n ≤ kMost neighbouring outputs of a row, each as store_product does.
template <std::uint32_t kMost>
void store_products(const MatmulArgs& args, float* out, const float* dots, const float* bias,
                    std::uint32_t n) {
  const auto store = [&](std::uint32_t count) __attribute__((always_inline)) {
    float products[kMost];
    std::copy_n(dots, count, products);
    if (bias != nullptr)
      for (std::uint32_t o = 0; o < count; ++o) products[o] += bias[o];
    if (args.accumulate)
      for (std::uint32_t o = 0; o < count; ++o) products[o] += out[o];
    std::copy_n(products, count, out);
  };
  // With a constant count, the compiler uses whole registers.
  if (n == kMost) return store(kMost);
  store(n);
}

/// Stores the products of one group with row i of out; the last group may have fewer outputs.
inline void store_group(const MatmulArgs& args, const LaunchPermit& permit, std::uint32_t group,
                        std::uint32_t i, const float* dots) {
  const std::uint32_t first = group * kGroupRows;
  store_products<kGroupRows>(args, args.out + std::size_t{i} * args.weight.n_out + first, dots,
                             args.bias ? permit.open(args.bias) + first : nullptr,
                             std::min(args.weight.n_out - first, kGroupRows));
}

inline void expect_within_limits(const BackendLimits& limits, const LaunchContext& context) {
  expects(context.rows.size() <= limits.max_rows, "a step has at most max_rows rows");
}

inline void expect_within_limits(const BackendLimits& limits, const LaunchContext& context,
                                 const ExpertMatmulArgs& args) {
  expect_within_limits(limits, context);
  expects(args.weight.n_in <= limits.max_width, "matrix rows are at most max_width long");
  expects(args.n_experts > 0 && args.n_experts <= limits.n_experts,
          "experts fit the backend's limits");
  expects(args.weight.layout == MatrixLayout::Rows || args.n_out() % kGroupRows == 0,
          "each expert's matrix has whole row groups");
  expects(args.stride() >= args.n_out(), "the products of two items do not overlap");
}

inline void expect_within_limits(const BackendLimits& limits, const LaunchContext& context,
                                 const ProjectionArgs& args) {
  expect_within_limits(limits, context);
  expects(!args.matmuls.empty() && args.matmuls.size() <= ProjectionArgs::kMaxMatmuls,
          "a projection has 1 to kMaxMatmuls matmuls");
  const MatmulArgs& first = args.matmuls.front();
  expects(first.weight.n_in <= limits.max_width, "matrix rows are at most max_width long");
  expects(args.norm == nullptr || args.norm->out == first.x,
          "the norm of a projection computes its rows of x");
  expects(args.swiglu == nullptr || (args.swiglu->gate == first.x && args.norm == nullptr),
          "the gate of a projection computes its rows of x");
  for (const MatmulArgs& matmul : args.matmuls)
    expects(matmul.x == first.x && matmul.weight.n_in == first.weight.n_in &&
                matmul.select.data() == first.select.data(),
            "the matmuls of a projection share their rows of x");
}

inline void expect_within_limits(const BackendLimits& limits, const LaunchContext& context,
                                 const LowRankArgs& args) {
  expect_within_limits(limits, context);
  expects(!args.products.empty() && args.products.size() <= LowRankArgs::kMaxProducts,
          "a low-rank launch has 1 to kMaxProducts products");
  expects(args.n_in <= limits.max_width, "matrix rows are at most max_width long");
  expects(args.adapters.size() == context.gates->sequence_count(),
          "every sequence has an adapter or none");
  for (const LowRankProduct& product : args.products) {
    expects(product.n_out <= limits.max_width, "matrix rows are at most max_width long");
    for (const LowRankMatrix* adapter : args.adapters)
      expects(adapter == nullptr || adapter[product.slot].rank <= args.max_rank,
              "no rank is above the launch's highest one");
  }
}

inline void expect_within_limits(const BackendLimits& limits, const LaunchContext& context,
                                 const ConvolutionArgs& args) {
  expect_within_limits(limits, context);
  expects(args.n_taps >= 2 && args.n_taps <= ConvolutionArgs::kMaxTaps,
          "a convolution has a tap for an earlier row, and few taps");
  expects(!args.state_tables.empty(), "every sequence has a place for its state");
}

inline void expect_within_limits(const BackendLimits& limits, const LaunchContext& context,
                                 const RecurrenceArgs& args) {
  expect_within_limits(limits, context);
  expects(args.n_groups > 0 && args.n_heads % args.n_groups == 0,
          "heads divide evenly among groups");
  expects(args.pieces.size() >= args.n_heads, "every head has a piece of the state");
  expects(!args.state_tables.empty(), "every sequence has a place for its state");
}

inline void expect_within_limits(const BackendLimits& limits, const LaunchContext& context,
                                 const AttentionArgs& args) {
  expect_within_limits(limits, context);
  expects(args.n_heads <= limits.n_heads && args.layout.head_dim <= limits.head_dim,
          "heads fit the backend's limits");
  expects(args.layout.n_kv_heads > 0 && args.n_heads % args.layout.n_kv_heads == 0,
          "query heads divide evenly among kv heads");
  expects(args.layout.value_dim() <= args.layout.head_dim, "latent values are part of the keys");
  for (const RowRef& row : context.rows)
    expects(row.position < limits.max_context, "positions are below max_context");
}

}  // namespace leasehold
