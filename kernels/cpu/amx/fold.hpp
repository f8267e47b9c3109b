/// Adds stored tiles of sums to the dots of a group, in the order of int8_order.hpp.
#pragma once

#include <immintrin.h>

#include "kernels/cpu/amx/steps.hpp"
#include "kernels/cpu/avx512/int8_blocks.hpp"

namespace leasehold::amx {

/// The sums of a piece, one for each pair of a row of x and a row of the group.
using ProductTile = std::int32_t[kInt8TileRows][kGroupRows];

/// The state of a group's fold between steps.
struct alignas(64) FoldScratch {
  GroupDots chunk;
  ProductTile sums;                 ///< Sums of a block's sub-blocks so far, times their scales.
  avx512::SubBlockFactors factors;  ///< Factors of the same block.
};

/// A group times the rows of a tile.
struct Fold {
  const std::byte* group;
  const RoundedRow* x;
  std::uint32_t n_rows;
  FoldScratch* scratch;
  GroupDots* out;
};

/// The largest magnitude of a sub-block's sum times its scale.
template <TensorType kType>
constexpr std::int64_t largest_product() {
  constexpr GroupFormat kFormat = group_format(kType);
  const std::int64_t element = std::max<std::int64_t>(kFormat.offset - kFormat.smallest_code(),
                                                      kFormat.largest_code() - kFormat.offset);
  return kFormat.sub_block * 127 * kFormat.largest_scale * element;
}

/// How many products of sub-blocks and scales can be added as floats without rounding, because all
/// sums are at most 2^24: those of a whole step, of half a step, or a single one.
template <TensorType kType>
constexpr std::uint32_t exact_sub_blocks() {
  std::uint32_t run = kStepPieces;
  while (run > 1 && largest_product<kType>() * run > 1 << 24) run /= 2;
  return run;
}

/// The sums of row r's chunk before the step.
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline __m512
begin_row(const Fold& fold, const Step& step, std::uint32_t r) {
  return step.begins_chunk() ? _mm512_setzero_ps() : _mm512_load_ps(fold.scratch->chunk[r]);
}

/// Keeps the chunk of row r, or adds it to the dots if the step ends the chunk.
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline void
end_row(const Fold& fold, const Step& step, std::uint32_t r, __m512 chunk) {
  if (!step.ends_chunk()) return _mm512_store_ps(fold.scratch->chunk[r], chunk);
  float* out = (*fold.out)[r];
  _mm512_storeu_ps(out,
                   step.is_in_first_chunk() ? chunk : _mm512_add_ps(_mm512_loadu_ps(out), chunk));
}

/// Folds kPieces blocks of 32.
template <TensorType kType, std::uint32_t kPieces>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline void
fold_blocks(const Fold& fold, const Step& step, const ProductTile* products) {
  constexpr GroupFormat kFormat = group_format(kType);
  const std::byte* block = fold.group + std::size_t{step.pieces.begin} * kFormat.size_bytes();
  __m512 scales[kPieces];
  __m512 minima[kPieces];
#pragma GCC unroll 4
  for (std::uint32_t i = 0; i < kPieces; ++i, block += kFormat.size_bytes()) {
    scales[i] = avx512::load_scales<kType>(block);
    if constexpr (kFormat.has_min) minima[i] = avx512::load_halves(block + kGroupRows * 2);
  }
  for (std::uint32_t r = 0; r < fold.n_rows; ++r) {
    const float* d = fold.x[r].scale + step.pieces.begin;
    const std::int16_t* sums = fold.x[r].sums + std::size_t{step.pieces.begin} * 2;
    __m512 chunk = begin_row(fold, step, r);
#pragma GCC unroll 4
    for (std::uint32_t i = 0; i < kPieces; ++i) {
      const __m512 scale = _mm512_mul_ps(scales[i], _mm512_set1_ps(d[i]));
      chunk = _mm512_fmadd_ps(scale, avx512::to_floats(_mm512_load_si512(products[i][r])), chunk);
      if constexpr (kFormat.has_min) {
        const __m512i sum = _mm512_dpwssd_epi32(
            _mm512_setzero_si512(), avx512::broadcast_word(sums + i * 2), _mm512_set1_epi16(1));
        const __m512 minimum = _mm512_mul_ps(minima[i], _mm512_set1_ps(d[i]));
        chunk = _mm512_fmadd_ps(minimum, avx512::to_floats(sum), chunk);
      }
    }
    end_row(fold, step, r, chunk);
  }
}

/// The sums of q of block b of 256 of row x, times the minima of its sub-blocks.
template <TensorType kType>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline __m512i
minima_of(const avx512::SubBlockFactors& factors, const RoundedRow& x, std::size_t b) {
  constexpr std::uint32_t kPieces = block_pieces(kType);
  avx512::RowTerms terms;
  avx512::prepare_row<kType>(x, b, terms);
  __m512i sum = _mm512_setzero_si512();
#pragma GCC unroll 8
  for (std::uint32_t s = 0; s < kPieces; s += 2)
    sum =
        _mm512_dpwssd_epi32(sum, factors.minima[s / 2], avx512::broadcast_word(terms.sub_sums + s));
  return sum;
}

/// Folds a block of 256 whose sums are complete. `block` has the block's pieces, `bytes` its data.
template <TensorType kType>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline void
fold_super_block(const Fold& fold, const Step& block, const std::byte* bytes) {
  const std::uint32_t b = block.pieces.begin / block_pieces(kType);
  const __m512 scales = avx512::load_scales<kType>(bytes);
  for (std::uint32_t r = 0; r < fold.n_rows; ++r) {
    const RoundedRow& x = fold.x[r];
    const __m512 d = _mm512_set1_ps(x.scale[b]);
    const __m512 sum = avx512::to_floats(_mm512_load_si512(fold.scratch->sums[r]));
    __m512 chunk = begin_row(fold, block, r);
    chunk = _mm512_fmadd_ps(_mm512_mul_ps(scales, d), sum, chunk);
    if constexpr (group_format(kType).has_min) {
      const __m512 min = _mm512_mul_ps(avx512::load_halves(bytes + kGroupRows * 2), d);
      const __m512i minima = minima_of<kType>(fold.scratch->factors, x, b);
      chunk = _mm512_fnmadd_ps(min, avx512::to_floats(minima), chunk);
    }
    end_row(fold, block, r, chunk);
  }
}

/// Adds the products of four sub-blocks and their scales to `sum`, exactly.
template <TensorType kType>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline __m512i
add_scaled(__m512i sum, const __m512 (&scales)[kStepPieces], const ProductTile* products,
           std::uint32_t r) {
  constexpr std::uint32_t kRun = exact_sub_blocks<kType>();
  static_assert(largest_product<kType>() * kRun <= 1 << 24);
#pragma GCC unroll 4
  for (std::uint32_t first = 0; first < kStepPieces; first += kRun) {
    __m512 run = _mm512_setzero_ps();
#pragma GCC unroll 4
    for (std::uint32_t i = first; i < first + kRun; ++i)
      run = _mm512_fmadd_ps(scales[i], avx512::to_floats(_mm512_load_si512(products[i][r])), run);
    sum = _mm512_add_epi32(sum, _mm512_maskz_cvtps_epi32(0xFFFF, run));
  }
  return sum;
}

/// Folds four sub-blocks of a block of 256, and after the last four the block itself.
template <TensorType kType>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline void
fold_sub_blocks(const Fold& fold, const Step& step, const ProductTile* products) {
  constexpr std::uint32_t kPieces = block_pieces(kType);
  static_assert(kPieces % kStepPieces == 0, "a step is in one block");
  const std::uint32_t first = step.pieces.begin % kPieces;
  const std::byte* block =
      fold.group + std::size_t{step.pieces.begin / kPieces} * group_format(kType).size_bytes();
  if (first == 0) avx512::prepare_factors<kType>(block, fold.scratch->factors);
  __m512 scales[kStepPieces];
#pragma GCC unroll 4
  for (std::uint32_t i = 0; i < kStepPieces; ++i)
    scales[i] = avx512::to_floats(fold.scratch->factors.scales[first + i]);
  for (std::uint32_t r = 0; r < fold.n_rows; ++r) {
    std::int32_t* sums = fold.scratch->sums[r];
    const __m512i before = first == 0 ? _mm512_setzero_si512() : _mm512_load_si512(sums);
    _mm512_store_si512(sums, add_scaled<kType>(before, scales, products, r));
  }
  if (first + kStepPieces == kPieces)
    fold_super_block<kType>(fold, {{step.pieces.end - kPieces, step.pieces.end}, step.chunk},
                            block);
}

/// Folds a step. Steps come in order.
template <TensorType kType>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline void
fold_step(const Fold& fold, const Step& step, const ProductTile* products) {
  if constexpr (group_format(kType).has_sub_blocks()) {
    if (!step.is_empty()) fold_sub_blocks<kType>(fold, step, products);
  } else {
    if (step.count() == kStepPieces) return fold_blocks<kType, kStepPieces>(fold, step, products);
    for (std::uint32_t piece = step.pieces.begin; piece < step.pieces.end; ++piece)
      fold_blocks<kType, 1>(fold, {{piece, piece + 1}, step.chunk},
                            products + (piece - step.pieces.begin));
  }
}

}  // namespace leasehold::amx
