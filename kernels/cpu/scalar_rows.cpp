#include "kernels/cpu/scalar_rows.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cpu/attend.hpp"
#include "kernels/cpu/dot_weights.hpp"
#include "kernels/numerics/elementwise.hpp"
#include "kernels/numerics/exp.hpp"
#include "kernels/numerics/f16.hpp"
#include "kernels/numerics/kv_q8.hpp"
#include "kernels/numerics/ordered_sum.hpp"
#include "kernels/numerics/rope.hpp"

namespace leasehold::scalar {
namespace {

struct AttentionOps {
  static constexpr std::uint32_t kRunQueries = kMaxTileQueries;
  static constexpr bool kWidensKeys = true;

  static const float* widen(const Half* from, std::uint32_t n, float* to) {
    for (std::uint32_t i = 0; i < n; ++i) to[i] = f32_from_f16(from[i]);
    return to;
  }
  static void widen_codes(const std::int8_t* q, const float* scales, std::uint32_t n, float* to) {
    for (std::uint32_t i = 0; i < n; ++i) to[i] = kv_value(q[i], scales[i / kKvScaleBlock]);
  }

  static std::uint32_t score_block(const AttentionTile& tile, const float* keys,
                                   std::uint32_t query, std::uint32_t at) {
    const std::uint32_t head_dim = tile.head_dim;
    float* scores = weights_of(tile, query) + at;
    for (std::uint32_t i = 0; i < KvLayout::kBlockTokens; ++i)
      scores[i] =
          ordered_dot(keys + std::size_t{i} * head_dim, tile.q[query], head_dim) * tile.scale;
    return 1;
  }

  static void softcap(float* scores, std::uint32_t n, float cap) {
    scalar::softcap(scores, n, cap);
  }
  static void softmax(float* scores, std::uint32_t n, float* partial) {
    scalar::softmax(scores, n, partial);
  }

  template <class Kv>
  static void weigh(const AttentionTile& tile, const WeighRun& run) {
    for (std::uint32_t i = run.begin; i < run.end; ++i) {
      const Kv* value = value_at<Kv>(tile, i);
      for (std::uint32_t d = 0; d < tile.value_dim; ++d) {
        const float element = as_float(value[d]);
        for (std::uint32_t query = run.first_query; query < run.first_query + run.n_queries;
             ++query) {
          float& acc = tile.partial[query][kPartialAcc + d];
          acc = std::fma(weights_of(tile, query)[i], element, acc);
        }
      }
    }
  }
};

/// advance_column of kColumns neighbouring columns.
template <std::uint32_t kColumns>
void advance_columns(const StateHead& head, const StateRow& row, std::uint32_t first) {
  float old[kColumns] = {};
  const auto load = [&](std::uint32_t i) {
    if (head.before != nullptr)
      std::copy_n(head.before + std::size_t{i} * head.value_dim + first, kColumns, old);
  };
  float u[kColumns] = {};
  for (std::uint32_t i = 0; head.is_delta && i < head.key_dim; ++i) {
    load(i);
    for (std::uint32_t c = 0; c < kColumns; ++c) u[c] = std::fma(old[c], row.key[i], u[c]);
  }
  const float* value = row.value + first;
  for (std::uint32_t c = 0; c < kColumns; ++c)
    u[c] = row.weight * (head.is_delta ? value[c] - row.decay * u[c] : value[c]);
  float y[kColumns] = {};
  for (std::uint32_t i = 0; i < head.key_dim; ++i) {
    load(i);
    float* after = head.after + std::size_t{i} * head.value_dim + first;
    for (std::uint32_t c = 0; c < kColumns; ++c) {
      after[c] = std::fma(row.key[i], u[c], row.decay * old[c]);
      y[c] = std::fma(after[c], row.query[i], y[c]);
    }
  }
  for (std::uint32_t c = 0; c < kColumns; ++c)
    row.out[first + c] = head.skip == 0.0F ? y[c] : std::fma(head.skip, value[c], y[c]);
}

}  // namespace

void dot_tile(const DotTile& tile, DotProducts& out) {
  with_element_of(tile.type, [&]<class Element>(std::type_identity<Element>) {
    for (std::uint32_t o = 0; o < tile.n_outputs; ++o)
      for (std::uint32_t i = 0; i < tile.n_inputs; ++i)
        out[o / kDotOutputGroup][i][o % kDotOutputGroup] =
            ordered_dot(weights_as<Element>(tile, o), tile.x[i], tile.n);
  });
}

void dot_groups_int8(const Int8Tile& tile) {
  for (std::uint32_t g = 0; g < tile.n_groups; ++g)
    dot_group_int8(tile.type, tile.groups + g * row_group_bytes(tile.type, tile.n_in), tile.n_in,
                   {tile.x, tile.n_rows}, tile.out[g][0]);
}

void rms_norm_row(const NormRow& row) {
  const auto width = static_cast<float>(row.width);
  const float mean = row.is_centered ? ordered_sum(row.x, row.width) / width : 0.0F;
  float lanes[kSumLanes] = {};
  for (std::uint32_t i = 0; i < row.width; ++i) {
    const float x = row.x[i] - mean;
    lanes[i % kSumLanes] = std::fma(x, x, lanes[i % kSumLanes]);
  }
  const float factor = row.scale / std::sqrt(fold_lanes(lanes) / width + row.epsilon);
  for (std::uint32_t i = 0; i < row.width; ++i) {
    const float scaled = (row.x[i] - mean) * factor;
    const float value = row.weight != nullptr ? scaled * row.weight[i] : scaled;
    row.out[i] = (row.accumulate ? row.out[i] + value : value) * row.out_scale;
  }
}

void swiglu(Activation activation, float* gate, const float* up, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) gate[i] = gated(activation, gate[i], up[i]);
}

void softcap(float* x, std::size_t n, float cap) {
  for (std::size_t i = 0; i < n; ++i) x[i] = softcapped(x[i], cap);
}

void softmax(float* scores, std::uint32_t n, float* partial) {
  const float max = max_score(scores, n);
  for (std::uint32_t i = 0; i < n; ++i) scores[i] = exp_f32(scores[i] - max);
  partial[kPartialMax] = max;
  partial[kPartialSum] = ordered_sum(scores, n);
}

void store_dots(const DotStore& store) {
  for (std::uint32_t i = 0; i < store.n_rows; ++i) {
    float* out = store.out + i * store.stride;
    float products[kGroupRows];
    std::copy_n((*store.dots)[i], kGroupRows, products);
    if (store.bias != nullptr)
      for (std::uint32_t o = 0; o < kGroupRows; ++o) products[o] += store.bias[o];
    if (store.accumulate)
      for (std::uint32_t o = 0; o < kGroupRows; ++o) products[o] += out[o];
    std::copy_n(products, kGroupRows, out);
  }
}

void add_scaled(float weight, const float* x, float* out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) out[i] = std::fma(weight, x[i], out[i]);
}

void add_low_rank(const LowRankTile& tile) {
  with_element_of(tile.type, [&]<class Element>(std::type_identity<Element>) {
    const auto* b = reinterpret_cast<const Element*>(tile.b);
    for (std::uint32_t k = 0; k < tile.rank; ++k, b += tile.stride)
      for (std::uint32_t i = 0; i < tile.n_rows; ++i)
        for (std::uint32_t o = 0; o < tile.n_outputs; ++o)
          tile.out[i][o] = std::fma(as_float(b[o]), tile.h[i][k], tile.out[i][o]);
  });
}

/// Computes several columns at a time, because those of a row of the state are neighbours.
void advance_state(const StateHead& head, const StateRow* rows, std::uint32_t n_rows) {
  constexpr std::uint32_t kColumns = 16;
  std::uint32_t j = 0;
  for (; j + kColumns <= head.value_dim; j += kColumns)
    for (std::uint32_t r = 0; r < n_rows; ++r)
      advance_columns<kColumns>(after_rows(head, r), rows[r], j);
  for (; j < head.value_dim; ++j)
    for (std::uint32_t r = 0; r < n_rows; ++r) advance_column(after_rows(head, r), rows[r], j);
}

void rope_head(float* head, const float* cos_sin, std::uint32_t rope_dim, RopeStyle style) {
  for (std::uint32_t i = 0; i < rope_dim / 2; ++i) rotate_pair(head, style, i, rope_dim, cos_sin);
}

void store_kv(KvType type, const float* values, std::byte* to, std::size_t n) {
  if (type == KvType::F32) {
    std::memcpy(to, values, n * sizeof(float));
    return;
  }
  for (std::size_t i = 0; i < n; ++i) {
    const Half half = f16_from_f32(values[i]);
    std::memcpy(to + i * sizeof half, &half, sizeof half);
  }
}

void attend(const AttentionTile& tile) {
  attend_with<AttentionOps>(tile);
}

}  // namespace leasehold::scalar
