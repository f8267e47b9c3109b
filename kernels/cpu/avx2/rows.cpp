#include "kernels/cpu/avx2/rows.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/cpu/avx2/lanes.hpp"
#include "kernels/cpu/dot_weights.hpp"
#include "kernels/cpu/prefetch.hpp"
#include "kernels/numerics/elementwise.hpp"
#include "kernels/numerics/rope.hpp"

namespace leasehold::avx2 {
namespace {

/// Weight rows and inputs that are multiplied at once.
constexpr std::uint32_t kOutputsAtOnce = 3;
constexpr std::uint32_t kInputsAtOnce = 4;

/// How many of the four registers with the 32 lanes of a dot are summed at once. With twelve dots,
/// one register of each fills the register file, beside three weights and an input.
constexpr int parts_at_once(int dots) {
  return dots <= 3 ? 4 : dots <= 6 ? 2 : 1;
}

/// Returns how many elements of the rows are multiplied with all inputs of a tile before the next
/// elements: the chunks of six rows and of four inputs stay in the L1 cache meanwhile. Rows with
/// one input are read in order.
std::size_t chunk_of(const DotTile& tile) {
  const std::size_t most = tile.type == TensorType::F32 ? 640 : 1024;
  if (tile.n <= most || tile.n_inputs == 1) return tile.n;
  const std::size_t chunks = (tile.n + most - 1) / most;
  return ((tile.n + chunks - 1) / chunks + kSumLanes - 1) / kSumLanes * kSumLanes;
}

/// A chunk of the rows and inputs of a tile.
struct Chunk {
  DotTile rows;
  bool is_first;
  bool is_last;  ///< Others have no tail.
  Lanes* lanes;  ///< [kDotOutputs, kDotInputs]: of the dots.
};

/// Weight rows, inputs, and the lanes of their dots.
template <class Element, int kOutputs, int kInputs>
struct Operands {
  const Element* w[kOutputs];
  const float* x[kInputs];
  Lanes (*lanes)[kInputs];  // [kOutputs]

  Operands(const Chunk& chunk, std::uint32_t output, std::uint32_t input)
      : lanes(reinterpret_cast<Lanes (*)[kInputs]>(chunk.lanes + std::size_t{output} * kDotInputs +
                                                   input * kOutputs)) {
    for (int o = 0; o < kOutputs; ++o) w[o] = weights_as<Element>(chunk.rows, output + o);
    for (int i = 0; i < kInputs; ++i) x[i] = chunk.rows.x[input + i];
  }
};

/// Adds the whole steps of 32 to kParts registers of each dot's lanes, from part `part` on.
template <int kParts, class Element, int kOutputs, int kInputs>
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline void add_products(
    const Chunk& chunk, const Operands<Element, kOutputs, kInputs>& of, std::uint32_t part,
    NextRows& next) {
  __m256 sums[kParts][kOutputs][kInputs];
#pragma GCC unroll 4
  for (int p = 0; p < kParts; ++p)
#pragma GCC unroll 3
    for (int o = 0; o < kOutputs; ++o)
#pragma GCC unroll 4
      for (int i = 0; i < kInputs; ++i)
        sums[p][o][i] = chunk.is_first ? _mm256_setzero_ps() : of.lanes[o][i].part[part + p];
  NextRows requests = next;
  const std::size_t end = chunk.rows.n / kSumLanes * kSumLanes;
  for (std::size_t at = part * kWidth; at < end; at += kSumLanes) {
    requests.step();
#pragma GCC unroll 4
    for (int p = 0; p < kParts; ++p) {
      __m256 weights[kOutputs];
#pragma GCC unroll 3
      for (int o = 0; o < kOutputs; ++o) weights[o] = load8(of.w[o] + at + p * kWidth);
#pragma GCC unroll 4
      for (int i = 0; i < kInputs; ++i) {
        const __m256 input = load8(of.x[i] + at + p * kWidth);
#pragma GCC unroll 3
        for (int o = 0; o < kOutputs; ++o)
          sums[p][o][i] = _mm256_fmadd_ps(weights[o], input, sums[p][o][i]);
      }
    }
  }
  next = requests;
#pragma GCC unroll 4
  for (int p = 0; p < kParts; ++p)
#pragma GCC unroll 3
    for (int o = 0; o < kOutputs; ++o)
#pragma GCC unroll 4
      for (int i = 0; i < kInputs; ++i) of.lanes[o][i].part[part + p] = sums[p][o][i];
}

/// The steps + 16 and + 8 of the fold.
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline __m256 fold_to_eight(
    const Lanes& lanes) {
  return _mm256_add_ps(_mm256_add_ps(lanes.part[0], lanes.part[2]),
                       _mm256_add_ps(lanes.part[1], lanes.part[3]));
}

/// The step + 4 of the fold, which leaves one dot per half.
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline __m256 fold_halves(__m256 a, __m256 b) {
  return _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
}

/// Four dots, folded together: a transposition that adds at each of its steps.
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline __m128 fold_four(
    const Lanes (&lanes)[4]) {
  const __m256 even = fold_halves(fold_to_eight(lanes[0]), fold_to_eight(lanes[2]));
  const __m256 odd = fold_halves(fold_to_eight(lanes[1]), fold_to_eight(lanes[3]));
  // The steps + 2 and + 1, within halves.
  const __m256 pairs =
      _mm256_add_ps(_mm256_shuffle_ps(even, odd, 0x44), _mm256_shuffle_ps(even, odd, 0xEE));
  const __m256 dots =
      _mm256_add_ps(_mm256_shuffle_ps(pairs, pairs, 0x88), _mm256_shuffle_ps(pairs, pairs, 0xDD));
  return _mm_movelh_ps(_mm256_castps256_ps128(dots), _mm256_extractf128_ps(dots, 1));
}

/// Folds the dots of a weight row.
template <int kInputs>
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline void fold_dots(
    const Lanes (&lanes)[kInputs], std::uint32_t output, float (*out)[kDotOutputGroup]) {
  if constexpr (kInputs == 4) {
    float dots[4];
    _mm_storeu_ps(dots, fold_four(lanes));
    for (int i = 0; i < 4; ++i) out[i][output] = dots[i];
  } else {
    for (int i = 0; i < kInputs; ++i) out[i][output] = fold(lanes[i]);
  }
}

/// Adds a chunk to the dots of kOutputs weight rows from `output` on with kInputs inputs from
/// `input` on. The last chunk's lanes are folded.
template <class Element, int kOutputs, int kInputs>
[[gnu::target("avx2,fma,f16c")]] void dot_block(const Chunk& chunk, std::uint32_t output,
                                                std::uint32_t input, NextRows& next,
                                                DotProducts& out) {
  constexpr int kParts = parts_at_once(kOutputs * kInputs);
  const Operands<Element, kOutputs, kInputs> of(chunk, output, input);
  for (std::uint32_t part = 0; part < 4; part += kParts)
    add_products<kParts>(chunk, of, part, next);
  if (!chunk.is_last) return;
  const std::size_t tail = chunk.rows.n % kSumLanes;
  const std::size_t whole = chunk.rows.n - tail;
  for (int o = 0; o < kOutputs; ++o) {
    for (int i = 0; tail > 0 && i < kInputs; ++i)
      add_tail(of.lanes[o][i], of.w[o] + whole, of.x[i] + whole, tail);
    const std::uint32_t to = output + o;
    fold_dots(of.lanes[o], to % kDotOutputGroup, out[to / kDotOutputGroup] + input);
  }
}

template <class Element, int kOutputs>
[[gnu::target("avx2,fma,f16c")]] void dot_inputs(const Chunk& chunk, std::uint32_t output,
                                                 std::uint32_t input, NextRows& next,
                                                 DotProducts& out) {
  switch (chunk.rows.n_inputs - input) {
    case 1:
      return dot_block<Element, kOutputs, 1>(chunk, output, input, next, out);
    case 2:
      return dot_block<Element, kOutputs, 2>(chunk, output, input, next, out);
    case 3:
      return dot_block<Element, kOutputs, 3>(chunk, output, input, next, out);
    default:
      return dot_block<Element, kOutputs, kInputsAtOnce>(chunk, output, input, next, out);
  }
}

/// Adds a chunk to all dots of a tile. With one input, memory is the limit, and memory is fastest
/// when rows are read one after the other.
template <class Element>
[[gnu::target("avx2,fma,f16c")]] void dot_chunk(const Chunk& chunk, NextRows& next,
                                                DotProducts& out) {
  const auto [n_inputs, n_outputs] = std::pair(chunk.rows.n_inputs, chunk.rows.n_outputs);
  for (std::uint32_t i = 0; i < n_inputs; i += kInputsAtOnce) {
    std::uint32_t o = 0;
    for (; n_inputs > 1 && o + kOutputsAtOnce <= n_outputs; o += kOutputsAtOnce)
      dot_inputs<Element, kOutputsAtOnce>(chunk, o, i, next, out);
    for (; o < n_outputs; ++o) dot_inputs<Element, 1>(chunk, o, i, next, out);
  }
}

/// Returns elements [begin, begin + n) of the tile's rows and inputs.
DotTile part_of(const DotTile& tile, std::size_t begin, std::size_t n) {
  DotTile part = tile;
  part.n = n;
  const std::size_t skipped_bytes = begin * block_shape(tile.type).size_bytes;
  for (std::uint32_t o = 0; o < tile.n_outputs; ++o) part.weights[o] += skipped_bytes;
  for (std::uint32_t i = 0; i < tile.n_inputs; ++i) part.x[i] += begin;
  return part;
}

/// How often dots go through the weights of a tile.
std::uint32_t passes_of(const DotTile& tile) {
  constexpr std::uint32_t kPassesOfLeft[] = {0, 1, 2, 4};
  return tile.n_inputs / kInputsAtOnce * 4 + kPassesOfLeft[tile.n_inputs % kInputsAtOnce];
}

/// x · sigmoid(z)
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline __m256 times_sigmoid(__m256 x,
                                                                                 __m256 z) {
  const __m256 e = exp8(_mm256_xor_ps(z, _mm256_set1_ps(-0.0F)));
  return _mm256_div_ps(x, _mm256_add_ps(_mm256_set1_ps(1.0F), e));
}

/// gated, operation by operation. min and max return their second operand if one is a NaN.
template <Activation kActivation>
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline __m256 gated8(__m256 gate, __m256 up) {
  namespace e = elementwise_order;
  if constexpr (kActivation == Activation::ClampedSwiGlu) {
    const __m256 limit = _mm256_set1_ps(e::kGateLimit);
    const __m256 g = _mm256_min_ps(limit, gate);
    const __m256 u = _mm256_max_ps(_mm256_set1_ps(-e::kGateLimit), _mm256_min_ps(limit, up));
    return _mm256_mul_ps(times_sigmoid(g, _mm256_mul_ps(g, _mm256_set1_ps(e::kGateSlope))),
                         _mm256_add_ps(u, _mm256_set1_ps(1.0F)));
  } else if constexpr (kActivation == Activation::Sigmoid) {
    return _mm256_mul_ps(times_sigmoid(_mm256_set1_ps(1.0F), gate), up);
  } else if constexpr (kActivation == Activation::ReGlu) {
    return _mm256_mul_ps(_mm256_max_ps(gate, _mm256_setzero_ps()), up);
  } else if constexpr (kActivation == Activation::GeGlu) {
    const __m256 slope = _mm256_fmadd_ps(_mm256_set1_ps(e::kGeluCubic), _mm256_mul_ps(gate, gate),
                                         _mm256_set1_ps(e::kGeluLinear));
    return _mm256_mul_ps(times_sigmoid(gate, _mm256_mul_ps(gate, slope)), up);
  } else {
    return _mm256_mul_ps(times_sigmoid(gate, gate), up);
  }
}

template <Activation kActivation>
[[gnu::target("avx2,fma,f16c")]] void gate_elements(float* gate, const float* up, std::size_t n) {
  std::size_t i = 0;
  for (; i + kWidth <= n; i += kWidth)
    _mm256_storeu_ps(gate + i, gated8<kActivation>(load8(gate + i), load8(up + i)));
  for (; i < n; ++i) gate[i] = gated(kActivation, gate[i], up[i]);
}

/// Puts pairs 0 2 1 3 in order: shuffles of two registers work in halves of each.
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline __m256 in_order(__m256 pairs) {
  return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(pairs), 0xD8));
}

}  // namespace

void dot_tile(const DotTile& tile, DotProducts& out) {
  const std::uint32_t outputs = tile.n_inputs == 1 ? 1 : kOutputsAtOnce;
  const std::uint32_t repeats = (tile.n_outputs + outputs - 1) / outputs;
  NextRows next(tile, passes_of(tile) * repeats, tile.n_inputs == 1);
  Lanes lanes[kDotOutputs * kDotInputs];
  const std::size_t length = chunk_of(tile);
  std::size_t begin = 0;
  do {
    const std::size_t end = std::min(begin + length, tile.n);
    const Chunk chunk{part_of(tile, begin, end - begin), begin == 0, end == tile.n, lanes};
    with_element_of(tile.type, [&]<class Element>(std::type_identity<Element>) {
      dot_chunk<Element>(chunk, next, out);
    });
    begin = end;
  } while (begin < tile.n);
}

namespace {

/// The last elements, fewer than 32, are added to their lanes singly.
[[gnu::target("avx2,fma,f16c")]] float mean_of(const float* x, std::uint32_t n) {
  __m256 sums[4] = {};
  const std::uint32_t whole = n / kSumLanes * kSumLanes;
  for (std::uint32_t at = 0; at < whole; at += kSumLanes)
    for (std::uint32_t g = 0; g < 4; ++g)
      sums[g] = _mm256_add_ps(sums[g], load8(x + at + g * kWidth));
  float lanes[kSumLanes];
  for (std::uint32_t g = 0; g < 4; ++g) _mm256_storeu_ps(lanes + g * kWidth, sums[g]);
  for (std::uint32_t i = whole; i < n; ++i) lanes[i - whole] += x[i];
  return fold_lanes(lanes) / static_cast<float>(n);
}

[[gnu::target("avx2,fma,f16c")]] float squares_around(const float* x, std::uint32_t n, float mean) {
  const __m256 means = _mm256_set1_ps(mean);
  __m256 sums[4] = {};
  const std::uint32_t whole = n / kSumLanes * kSumLanes;
  for (std::uint32_t at = 0; at < whole; at += kSumLanes)
    for (std::uint32_t g = 0; g < 4; ++g) {
      const __m256 centered = _mm256_sub_ps(load8(x + at + g * kWidth), means);
      sums[g] = _mm256_fmadd_ps(centered, centered, sums[g]);
    }
  float lanes[kSumLanes];
  for (std::uint32_t g = 0; g < 4; ++g) _mm256_storeu_ps(lanes + g * kWidth, sums[g]);
  for (std::uint32_t i = whole; i < n; ++i)
    lanes[i - whole] = std::fma(x[i] - mean, x[i] - mean, lanes[i - whole]);
  return fold_lanes(lanes);
}

}  // namespace

void rms_norm_row(const NormRow& row) {
  const float mean = row.is_centered ? mean_of(row.x, row.width) : 0.0F;
  const float squares =
      row.is_centered ? squares_around(row.x, row.width, mean) : dot(row.x, row.x, row.width);
  const float factor = row.scale / std::sqrt(squares / static_cast<float>(row.width) + row.epsilon);
  const __m256 means = _mm256_set1_ps(mean);
  const __m256 factors = _mm256_set1_ps(factor);
  const __m256 out_scales = _mm256_set1_ps(row.out_scale);
  std::uint32_t i = 0;
  for (; i + kWidth <= row.width; i += kWidth) {
    __m256 value = _mm256_mul_ps(_mm256_sub_ps(load8(row.x + i), means), factors);
    if (row.weight != nullptr) value = _mm256_mul_ps(value, load8(row.weight + i));
    if (row.accumulate) value = _mm256_add_ps(load8(row.out + i), value);
    _mm256_storeu_ps(row.out + i, _mm256_mul_ps(value, out_scales));
  }
  for (; i < row.width; ++i) {
    const float scaled = (row.x[i] - mean) * factor;
    const float value = row.weight != nullptr ? scaled * row.weight[i] : scaled;
    row.out[i] = (row.accumulate ? row.out[i] + value : value) * row.out_scale;
  }
}

void swiglu(Activation activation, float* gate, const float* up, std::size_t n) {
  switch (activation) {
    case Activation::SwiGlu:
      return gate_elements<Activation::SwiGlu>(gate, up, n);
    case Activation::GeGlu:
      return gate_elements<Activation::GeGlu>(gate, up, n);
    case Activation::ClampedSwiGlu:
      return gate_elements<Activation::ClampedSwiGlu>(gate, up, n);
    case Activation::Sigmoid:
      return gate_elements<Activation::Sigmoid>(gate, up, n);
    case Activation::ReGlu:
      return gate_elements<Activation::ReGlu>(gate, up, n);
  }
}

void softcap(float* x, std::size_t n, float cap) {
  const __m256 one = _mm256_set1_ps(1.0F);
  const __m256 two = _mm256_set1_ps(2.0F);
  const __m256 caps = _mm256_set1_ps(cap);
  const __m256 turn = _mm256_set1_ps(2.0F / cap);
  std::size_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    const __m256 e = exp8(_mm256_mul_ps(load8(x + i), turn));
    const __m256 tanh = _mm256_sub_ps(one, _mm256_div_ps(two, _mm256_add_ps(one, e)));
    _mm256_storeu_ps(x + i, _mm256_mul_ps(caps, tanh));
  }
  for (; i < n; ++i) x[i] = softcapped(x[i], cap);
}

void add_scaled(float weight, const float* x, float* out, std::size_t n) {
  const __m256 weights = _mm256_set1_ps(weight);
  std::size_t i = 0;
  for (; i + kWidth <= n; i += kWidth)
    _mm256_storeu_ps(out + i, _mm256_fmadd_ps(weights, load8(x + i), load8(out + i)));
  for (; i < n; ++i) out[i] = std::fma(weight, x[i], out[i]);
}

void rope_head(float* head, const float* cos_sin, std::uint32_t rope_dim, RopeStyle style) {
  std::uint32_t i = 0;
  if (style == RopeStyle::Halves) {
    float* const second = head + rope_dim / 2;
    for (; i + kWidth <= rope_dim / 2; i += kWidth) {
      const __m256 low = load8(cos_sin + 2 * std::size_t{i});
      const __m256 high = load8(cos_sin + 2 * std::size_t{i} + kWidth);
      const __m256 cos = in_order(_mm256_shuffle_ps(low, high, 0x88));
      const __m256 sin = in_order(_mm256_shuffle_ps(low, high, 0xDD));
      const __m256 a = load8(head + i);
      const __m256 b = load8(second + i);
      _mm256_storeu_ps(head + i, _mm256_fmsub_ps(a, cos, _mm256_mul_ps(b, sin)));
      _mm256_storeu_ps(second + i, _mm256_fmadd_ps(a, sin, _mm256_mul_ps(b, cos)));
    }
  }
  for (; i < rope_dim / 2; ++i) rotate_pair(head, style, i, rope_dim, cos_sin);
}

void store_kv(KvType type, const float* values, std::byte* to, std::size_t n) {
  if (type == KvType::F32) {
    std::memcpy(to, values, n * sizeof(float));
    return;
  }
  std::size_t i = 0;
  for (; i + kWidth <= n; i += kWidth)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i * sizeof(Half)),
                     _mm256_cvtps_ph(load8(values + i), _MM_FROUND_TO_NEAREST_INT));
  for (; i < n; ++i) {
    const Half half = f16_from_f32(values[i]);
    std::memcpy(to + i * sizeof half, &half, sizeof half);
  }
}

}  // namespace leasehold::avx2
