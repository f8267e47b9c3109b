#include "kernels/reference/reference_backend.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/launch_rules.hpp"
#include "kernels/numerics/attention_order.hpp"
#include "kernels/numerics/elementwise.hpp"
#include "kernels/numerics/exp.hpp"
#include "kernels/numerics/f16.hpp"
#include "kernels/numerics/kv_q8.hpp"
#include "kernels/numerics/ordered_sum.hpp"
#include "kernels/numerics/rope.hpp"
#include "kernels/numerics/scale_vector.hpp"
#include "kernels/quant/dequantize.hpp"

namespace leasehold {
namespace {

constexpr std::uint32_t kBlockTokens = KvLayout::kBlockTokens;
constexpr std::uint32_t kPartitionBlocks = kPartitionPositions / kBlockTokens;

/// Stores one position of one head; the head's elements and scales begin at `head`.
void store_entry(const KvLayer& layout, const float* values, std::byte* head, std::uint32_t slot) {
  std::byte* to = head + layout.entry_offset_bytes(slot);
  if (layout.type == KvType::Q8_0)
    return round_kv(values, layout.head_dim, reinterpret_cast<std::int8_t*>(to),
                    reinterpret_cast<Half*>(head + layout.scales_offset_bytes(slot)));
  for (std::uint32_t i = 0; i < layout.head_dim; ++i) {
    if (layout.type == KvType::F32) {
      std::memcpy(to + i * sizeof(float), values + i, sizeof(float));
    } else {
      const Half half = f16_from_f32(values[i]);
      std::memcpy(to + i * sizeof half, &half, sizeof half);
    }
  }
}

/// out (+)= x · factor · weight; the args supply all but the addresses. Null: every weight is 1.
/// `centered` has room for a row.
void norm_vector(const RmsNormArgs& args, const float* x, const float* weight, float* out,
                 float* centered = nullptr, float out_scale = 1.0F) {
  const auto width = static_cast<float>(args.width);
  if (args.is_centered) {
    const float mean = ordered_sum(x, args.width) / width;
    for (std::uint32_t i = 0; i < args.width; ++i) centered[i] = x[i] - mean;
    x = centered;
  }
  const float factor = args.scale / std::sqrt(ordered_dot(x, x, args.width) / width + args.epsilon);
  for (std::uint32_t i = 0; i < args.width; ++i) {
    const float value = weight != nullptr ? (x[i] * factor) * weight[i] : x[i] * factor;
    out[i] = (args.accumulate ? out[i] + value : value) * out_scale;
  }
}

void load_entry(const KvLayer& layout, const std::byte* head, std::uint32_t slot, float* out) {
  const std::byte* from = head + layout.entry_offset_bytes(slot);
  if (layout.type == KvType::F32)
    return dequantize_row(TensorType::F32, from, out, layout.head_dim);
  if (layout.type == KvType::F16)
    return dequantize_row(TensorType::F16, from, out, layout.head_dim);
  const auto* scales = reinterpret_cast<const Half*>(head + layout.scales_offset_bytes(slot));
  for (std::uint32_t i = 0; i < layout.head_dim; ++i)
    out[i] = kv_value(static_cast<std::int8_t>(from[i]), f32_from_f16(scales[i / kKvScaleBlock]));
}

}  // namespace

ReferenceBackend::ReferenceBackend(const BackendLimits& limits, const ThreadGate& gate)
    : limits_(limits),
      gate_(gate),
      row_(std::max(limits.max_width, limits.head_dim)),
      rounded_(1, limits.max_width),
      partials_(std::size_t{partition_count(limits.max_context)} * partial_floats(limits.head_dim)),
      groups_(limits.n_experts, max_matmul_inputs(limits)) {}

LaunchStatus ReferenceBackend::embedding(const LaunchContext& context, const EmbeddingArgs& args) {
  expect_within_limits(limits_, context);
  return each_unit(context, label(context, LaunchSite::Embedding), context.rows.size(),
                   [&](const LaunchPermit& permit, std::size_t r) {
                     const auto token = static_cast<std::uint32_t>(args.tokens[r]);
                     expects(token < args.table.n_out, "a token is an index of the vocabulary");
                     float* out = args.out + r * args.table.n_in;
                     if (args.table.layout == MatrixLayout::RowGroups)
                       dequantize_grouped(permit, args.table, token, out);
                     else
                       dequantize_row(args.table.type, matrix_row(permit, args.table, token), out,
                                      args.table.n_in);
                     scale_vector({out, args.table.n_in}, args.scale);
                   });
}

LaunchStatus ReferenceBackend::rms_norm(const LaunchContext& context, const RmsNormArgs& args) {
  expect_within_limits(limits_, context);
  return each_unit(context, label(context, args.site), context.rows.size() * args.vectors_per_row,
                   [&](const LaunchPermit& permit, std::size_t i) {
                     norm_vector(args, args.x + i * args.width,
                                 permit.open(args.weight) + weight_offset(args, i),
                                 args.out + i * args.width, row_.data(),
                                 out_scale_of(permit, args));
                   });
}

LaunchStatus ReferenceBackend::matmul(const LaunchContext& context, const MatmulArgs& args) {
  expect_within_limits(limits_, context);
  expects(args.weight.n_in <= limits_.max_width, "matrix rows are at most max_width long");
  if (args.weight.layout == MatrixLayout::RowGroups) return matmul_int8(context, args);
  const std::uint32_t n_selected = selected_rows(context, args);
  const auto weight_row = [&](const LaunchPermit& permit, std::size_t o) {
    const std::byte* source = matrix_row(permit, args.weight, static_cast<std::uint32_t>(o));
    dequantize_row(args.weight.type, source, row_.data(), args.weight.n_in);
    for (std::uint32_t i = 0; i < n_selected; ++i) {
      float& out = args.out[std::size_t{i} * args.weight.n_out + o];
      const float dot = ordered_dot(row_.data(), selected_row(args, i), args.weight.n_in);
      store_product(args, out, dot, args.bias ? permit.open(args.bias) + o : nullptr);
    }
  };
  const std::uint32_t units = n_selected == 0 ? 0 : args.weight.n_out;
  return each_unit(context, label(context, args.site), units, weight_row);
}

/// A unit is one row group. Each unit rounds the rows of x again.
LaunchStatus ReferenceBackend::matmul_int8(const LaunchContext& context, const MatmulArgs& args) {
  const std::uint32_t n_selected = selected_rows(context, args);
  const auto multiply_group = [&](const LaunchPermit& permit, std::size_t unit) {
    const auto group = static_cast<std::uint32_t>(unit);
    const std::byte* weights = matrix_group(permit, args.weight, group);
    for (std::uint32_t i = 0; i < n_selected; ++i) {
      round_row(selected_row(args, i), args.weight.n_in, group_format(args.weight.type).elements,
                rounded_.buffer(0));
      const RoundedRow x = rounded_.row(0);
      float dots[kGroupRows];
      dot_group_int8(args.weight.type, weights, args.weight.n_in, {&x, 1}, dots);
      store_group(args, permit, group, i, dots);
    }
  };
  const std::uint32_t units = n_selected == 0 ? 0 : row_groups(args.weight.n_out);
  return each_unit(context, label(context, args.site), units, multiply_group);
}

LaunchStatus ReferenceBackend::prepare_heads(const LaunchContext& context, const HeadsArgs& args) {
  expect_within_limits(limits_, context);
  const std::uint32_t head_dim = args.layout.head_dim;
  const std::uint32_t n_kv_heads = args.k != nullptr ? args.layout.n_kv_heads : 0;
  LaunchStatus status{context.gates->all()};
  // A unit is one head. `use(permit, head, row)` changes it.
  const auto each_head = [&](LaunchSite site, float* heads, std::uint32_t n_heads, auto&& use) {
    if (status.none_live()) return;
    status &= each_unit(context, label(context, site), context.rows.size() * n_heads,
                        [&](const LaunchPermit& permit, std::size_t unit) {
                          use(permit, heads + unit * head_dim, unit / n_heads);
                        });
  };
  const auto norm = [&](LaunchSite site, float* heads, std::uint32_t n_heads,
                        Leased<const float> weight, std::uint32_t width) {
    each_head(site, heads, n_heads, [&](const LaunchPermit& permit, float* head, std::size_t) {
      norm_vector({.site = site, .width = width, .epsilon = args.epsilon}, head,
                  open_or_null(permit, weight), head);
    });
  };
  const auto rotate = [&](LaunchSite site, float* heads, std::uint32_t n_heads) {
    if (args.rope_dim == 0) return;
    each_head(site, heads, n_heads, [&](const LaunchPermit&, float* head, std::size_t row) {
      for (std::uint32_t i = 0; i < args.rope_dim / 2; ++i)
        rotate_pair(head + args.rope_begin(), args.style, i, args.rope_dim,
                    args.cos_sin + row * args.rope_dim);
    });
  };
  if (args.query_norm) norm(LaunchSite::QueryNorm, args.q, args.n_heads, args.query_norm, head_dim);
  if (args.key_norm)
    norm(LaunchSite::KeyNorm, args.k, n_kv_heads, args.key_norm, args.layout.value_dim());
  if (args.norms_values) norm(LaunchSite::ValueNorm, args.v, n_kv_heads, {}, head_dim);
  rotate(LaunchSite::QueryRope, args.q, args.n_heads);
  if (args.query_scales != nullptr)
    each_head(LaunchSite::QueryRope, args.q, args.n_heads,
              [&](const LaunchPermit&, float* head, std::size_t row) {
                scale_vector({head, head_dim}, args.query_scales[row]);
              });
  rotate(LaunchSite::KeyRope, args.k, n_kv_heads);
  if (n_kv_heads > 0 && !status.none_live()) status &= append(context, args);
  return status;
}

LaunchStatus ReferenceBackend::append(const LaunchContext& context, const HeadsArgs& args) {
  const KvLayer& layout = args.layout;
  const auto append_row = [&](const LaunchPermit& permit, std::size_t r) {
    const RowRef row = context.rows[r];
    if (!permit.is_live(row.sequence)) return;
    const Leased<std::byte> handle = args.block_tables[row.sequence][row.position / kBlockTokens];
    std::byte* block = permit.open(handle);
    const std::uint32_t slot = row.position % kBlockTokens;
    for (std::uint32_t h = 0; h < layout.n_kv_heads; ++h) {
      const std::size_t from = (r * layout.n_kv_heads + h) * layout.head_dim;
      store_entry(layout, args.k + from, block + layout.head_offset_bytes(0, h), slot);
      if (!layout.is_latent())
        store_entry(layout, args.v + from, block + layout.head_offset_bytes(1, h), slot);
    }
  };
  return each_unit(context, label(context, LaunchSite::KvAppend, Touches::TenantMemory),
                   context.rows.size(), append_row);
}

/// Positions [begin, end) of a partition.
struct ReferenceBackend::PartitionPart {
  std::uint32_t begin;
  std::uint32_t end;
  /// The keys of the kv head in each block that has such a position.
  std::array<const std::byte*, kPartitionBlocks> blocks;
};

/// Scores one partition of one row and head.
void ReferenceBackend::score_partition(const float* q, const AttentionArgs& args,
                                       const PartitionPart& part, float* partial) {
  const KvLayer& layout = args.layout;
  const auto load = [&](std::uint32_t plane, std::uint32_t i) {
    load_entry(layout, part.blocks[i / kBlockTokens] + plane * layout.values_offset_bytes(),
               i % kBlockTokens, row_.data());
    return row_.data();
  };
  std::array<float, kPartitionPositions> scores{};  // 0 before the window
  for (std::uint32_t i = part.begin; i < part.end; ++i) {
    scores[i] = ordered_dot(q, load(0, i), layout.head_dim) * args.scale;
    if (args.softcap > 0) scores[i] = softcapped(scores[i], args.softcap);
  }
  const float max = max_score(scores.data() + part.begin, part.end - part.begin);
  for (std::uint32_t i = part.begin; i < part.end; ++i) scores[i] = exp_f32(scores[i] - max);
  partial[kPartialMax] = max;
  partial[kPartialSum] = ordered_sum(scores.data(), part.end);
  float* acc = partial + kPartialAcc;
  std::fill_n(acc, layout.value_dim(), 0.0F);
  for (std::uint32_t i = part.begin; i < part.end; ++i) {
    const float* value = load(1, i);
    for (std::uint32_t d = 0; d < layout.value_dim(); ++d)
      acc[d] = std::fma(scores[i], value[d], acc[d]);
  }
}

LaunchStatus ReferenceBackend::attention(const LaunchContext& context, const AttentionArgs& args) {
  expect_within_limits(limits_, context, args);
  const KvLayer& layout = args.layout;
  LaunchStatus status{context.gates->all()};
  for (std::size_t unit = 0; unit < context.rows.size() * args.n_heads && !status.none_live();
       ++unit) {
    const RowRef row = context.rows[unit / args.n_heads];
    const auto head = static_cast<std::uint32_t>(unit % args.n_heads);
    const std::uint32_t kv_head = head / (args.n_heads / layout.n_kv_heads);
    const PartitionRange partitions = partitions_read(row.position, args.window);
    const float* q = args.q + unit * layout.head_dim;
    const auto scores = [&](const LaunchPermit& permit, std::size_t i) {
      if (!permit.is_live(row.sequence)) return;
      const std::uint32_t p = partitions.first + static_cast<std::uint32_t>(i);
      PartitionPart part{
          .begin = positions_skipped(row.position, args.window, p),
          .end = std::min(kPartitionPositions, row.position + 1 - p * kPartitionPositions)};
      for (std::uint32_t b = part.begin / kBlockTokens; b * kBlockTokens < part.end; ++b)
        part.blocks[b] = permit.open(args.block_tables[row.sequence][p * kPartitionBlocks + b]) +
                         layout.head_offset_bytes(0, kv_head);
      score_partition(q, args, part, partials_.data() + i * partial_floats(layout.value_dim()));
    };
    status &= each_unit(context, label(context, LaunchSite::AttentionScores, Touches::TenantMemory),
                        partitions.count, scores);
    const auto merge = [&](const LaunchPermit& permit, std::size_t) {
      if (!permit.is_live(row.sequence)) return;
      merge_partials(partials_.data(), partitions.count, layout.value_dim(),
                     args.sinks ? permit.open(args.sinks)[head] : kNoSink,
                     args.out + unit * layout.value_dim());
    };
    status &= each_unit(context, label(context, LaunchSite::AttentionMerge), 1, merge);
  }
  return status;
}

LaunchStatus ReferenceBackend::swiglu(const LaunchContext& context, const SwiGluArgs& args) {
  expect_within_limits(limits_, context);
  const auto gate_row = [&](const LaunchPermit&, std::size_t r) {
    float* gate = args.gate + r * args.width;
    const float* up = args.up + r * args.stride();
    for (std::uint32_t i = 0; i < args.width; ++i) gate[i] = gated(args.activation, gate[i], up[i]);
  };
  return each_unit(context, label(context, LaunchSite::SwiGlu), context.rows.size(), gate_row);
}

LaunchStatus ReferenceBackend::softcap(const LaunchContext& context, const SoftcapArgs& args) {
  const auto cap_row = [&](const LaunchPermit&, std::size_t r) {
    for (float& x : std::span(args.x + r * args.width, args.width)) x = softcapped(x, args.cap);
  };
  return each_unit(context, label(context, LaunchSite::LmHead), selected_rows(context, args),
                   cap_row);
}

LaunchStatus ReferenceBackend::copy_in(const LaunchContext& context, const CopyInArgs& args) {
  const std::size_t units = (args.size_bytes + kCopyUnitBytes - 1) / kCopyUnitBytes;
  return each_unit(context, label(context, args.site, touches_of(args)), units,
                   [&](const LaunchPermit& permit, std::size_t unit) {
                     copy_in_unit(permit, context, args, unit);
                   });
}

LaunchStatus ReferenceBackend::copy_blocks(const LaunchContext& context,
                                           const CopyBlocksArgs& args) {
  return each_unit(context, label(context, LaunchSite::BlockCopy, Touches::TenantMemory),
                   copy_piece_count(args, kCopyUnitBytes),
                   [&](const LaunchPermit& permit, std::size_t unit) {
                     copy_piece(permit, args, static_cast<std::uint32_t>(unit));
                   });
}

void ReferenceBackend::clear_workspace() {
  std::ranges::fill(row_, 0.0F);
  rounded_.clear(1);
  std::ranges::fill(partials_, 0.0F);
}

}  // namespace leasehold
