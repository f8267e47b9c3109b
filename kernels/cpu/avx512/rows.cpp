#include "kernels/cpu/avx512/rows.hpp"

#include <algorithm>

#include "kernels/cpu/avx512/fold.hpp"
#include "kernels/cpu/avx512/lanes.hpp"
#include "kernels/cpu/dot_weights.hpp"
#include "kernels/cpu/prefetch.hpp"

namespace leasehold::avx512 {
namespace {

/// Inputs that six weight rows meet at once.
constexpr std::uint32_t kInputsAtOnce = 4;

/// Registers of lanes that are summed at once: the 32 lanes of a dot are two. Six rows by four
/// inputs take one after the other, because one of each of their 24 dots fills the registers beside
/// a weight and the inputs. Fewer dots take both, so that weights pass once.
constexpr int parts_at_once(int dots) {
  return dots <= 12 ? 2 : 1;
}

/// n ≤ 16 elements, as floats.
template <class Element>
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline __m512 load_tail(
    const Element* from, std::size_t n) {
  float tail[kWidth] = {};
  for (std::size_t i = 0; i < n; ++i) tail[i] = as_float(from[i]);
  return _mm512_loadu_ps(tail);
}

/// Elements of a row that are multiplied with all inputs of a tile before the next ones: both sides
/// stay in the first cache while their parts pass.
constexpr std::size_t kChunk = 1024;

/// A chunk of the rows of a tile with some of its inputs.
struct Piece {
  std::size_t begin;
  std::size_t end;
  std::uint32_t first_output;
  std::uint32_t first_input;
};

/// The weight rows and inputs of a piece, from lane 16·part on. Dot o·kInputs + i is that of row o
/// and input i.
template <class Element, int kOutputs, int kInputs>
struct Operands {
  static constexpr int kDots = kOutputs * kInputs;
  static constexpr int kParts = parts_at_once(kDots);

  [[gnu::always_inline]] Operands(const DotTile& tile, const Piece& piece, std::uint32_t part) {
#pragma GCC unroll 6
    for (int o = 0; o < kOutputs; ++o)
      w[o] = weights_as<Element>(tile, piece.first_output + o) + part * kWidth;
#pragma GCC unroll 4
    for (int i = 0; i < kInputs; ++i) x[i] = tile.x[piece.first_input + i] + part * kWidth;
  }

  const Element* w[kOutputs];
  const float* x[kInputs];
};

/// Adds the whole steps of a piece to the sums: kParts registers of each dot's lanes.
template <class Element, int kOutputs, int kInputs, int kSums>
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline void add_steps(
    const Operands<Element, kOutputs, kInputs>& from, const Piece& piece, NextRows& next,
    __m512 (&sums)[kSums]) {
  NextRows requests = next;
  const std::size_t end = piece.end / kSumLanes * kSumLanes;
  for (std::size_t at = piece.begin; at < end; at += kSumLanes) {
    requests.step();
#pragma GCC unroll 2
    for (int p = 0; p < from.kParts; ++p) {
      __m512 values[kInputs];
#pragma GCC unroll 4
      for (int i = 0; i < kInputs; ++i) values[i] = _mm512_loadu_ps(from.x[i] + at + p * kWidth);
#pragma GCC unroll 6
      for (int o = 0; o < kOutputs; ++o) {
        const __m512 weights = load16(from.w[o] + at + p * kWidth);
#pragma GCC unroll 4
        for (int i = 0; i < kInputs; ++i) {
          __m512& sum = sums[p * from.kDots + o * kInputs + i];
          sum = _mm512_fmadd_ps(weights, values[i], sum);
        }
      }
    }
  }
  next = requests;
}

/// Adds the elements after the last whole step, if any. A lane without one keeps its bits.
template <class Element, int kOutputs, int kInputs, int kSums>
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline void add_tail(
    const Operands<Element, kOutputs, kInputs>& from, const Piece& piece, std::uint32_t part,
    __m512 (&sums)[kSums]) {
  const std::size_t whole = piece.end / kSumLanes * kSumLanes;
  if (whole == piece.end) return;
#pragma GCC unroll 2
  for (int p = 0; p < from.kParts; ++p) {
    const std::size_t first = whole + (part + p) * kWidth;
    const std::size_t left =
        first < piece.end ? std::min(piece.end - first, std::size_t{kWidth}) : 0;
    const __mmask16 mask = first_lanes(static_cast<std::ptrdiff_t>(left));
#pragma GCC unroll 6
    for (int o = 0; o < kOutputs; ++o) {
      const __m512 weights = load_tail(from.w[o] + whole + p * kWidth, left);
#pragma GCC unroll 4
      for (int i = 0; i < kInputs; ++i) {
        __m512& sum = sums[p * from.kDots + o * kInputs + i];
        sum = _mm512_mask3_fmadd_ps(
            weights, _mm512_maskz_loadu_ps(mask, from.x[i] + whole + p * kWidth), sum, mask);
      }
    }
  }
}

/// Null for `from` means zeros.
template <int kSums>
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline void load_sums(
    const __m512* from, __m512 (&sums)[kSums]) {
  if (from == nullptr) {
#pragma GCC unroll 24
    for (__m512& sum : sums) sum = _mm512_setzero_ps();
    return;
  }
#pragma GCC unroll 24
  for (int s = 0; s < kSums; ++s) sums[s] = from[s];
}

/// The rest of the fold, for dots whose lanes are added up to sixteen, with outputs from `first`
/// on.
template <int kOutputs, int kInputs>
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline void fold_dots(
    const __m512 (&dots)[kOutputs * kInputs], std::uint32_t first, float (*out)[kDotOutputs]) {
  if constexpr (kOutputs == kDotOutputs && kInputs == 4) {  // neighbours in `out`
    __m512 in_order[kOutputs * kInputs];
#pragma GCC unroll 24
    for (int d = 0; d < kOutputs * kInputs; ++d)
      in_order[d % kInputs * kOutputs + d / kInputs] = dots[d];
    auto* const to = reinterpret_cast<float*>(out);
#pragma GCC unroll 3
    for (int eight = 0; eight < kOutputs * kInputs; eight += 8)
      _mm256_storeu_ps(to + eight, fold_eight(in_order + eight));
    return;
  }
#pragma GCC unroll 24
  for (int d = 0; d < kOutputs * kInputs; ++d)
    out[d % kInputs][first + d / kInputs] = fold_sixteen(dots[d]);
}

/// Adds a piece to the lanes of its dots, which wait in `lanes` [2, dots] between pieces, or folds
/// them after the last piece. Lanes of the last registers go from there into the fold.
template <class Element, int kOutputs, int kInputs>
[[gnu::target("avx512f,avx512dq,avx2,fma")]] void dot_piece(const DotTile& tile, const Piece& piece,
                                                            __m512* lanes, NextRows& next,
                                                            DotProducts& out) {
  using Of = Operands<Element, kOutputs, kInputs>;
  constexpr int kSums = Of::kParts * Of::kDots;
  __m512 sums[kSums];
  for (std::uint32_t part = 0;; part += Of::kParts) {
    __m512* const kept = lanes + part * Of::kDots;
    load_sums(piece.begin == 0 ? nullptr : kept, sums);
    const Of from(tile, piece, part);
    add_steps(from, piece, next, sums);
    add_tail(from, piece, part, sums);
    const bool is_last_part = part + Of::kParts == 2;
    if (is_last_part && piece.end == tile.n) break;
#pragma GCC unroll 24
    for (int s = 0; s < kSums; ++s) kept[s] = sums[s];
    if (is_last_part) return;
  }
  __m512 dots[Of::kDots];
#pragma GCC unroll 24
  for (int d = 0; d < Of::kDots; ++d)
    dots[d] = _mm512_add_ps(Of::kParts == 2 ? sums[d] : lanes[d], sums[kSums - Of::kDots + d]);
  fold_dots<kOutputs, kInputs>(dots, piece.first_output, out + piece.first_input);
}

template <class Element, int kOutputs>
[[gnu::target("avx512f,avx512dq,avx2,fma")]] void dot_outputs(const DotTile& tile,
                                                              std::uint32_t first_output,
                                                              NextRows& next, DotProducts& out) {
  __m512 lanes[kDotInputs / kInputsAtOnce][2 * kOutputs * kInputsAtOnce];
  std::size_t begin = 0;
  do {
    const std::size_t end =
        tile.n_inputs > 2 ? std::min(begin + kChunk, tile.n) : tile.n;  // few inputs: in order
    for (std::uint32_t done = 0; done < tile.n_inputs; done += kInputsAtOnce) {
      const Piece piece{begin, end, first_output, done};
      // Dots that are over with this chunk share room, which stays in the first cache.
      __m512* to = lanes[end - begin == tile.n ? 0 : done / kInputsAtOnce];
      const std::uint32_t now = std::min(kInputsAtOnce, tile.n_inputs - done);
      if (now == 4) dot_piece<Element, kOutputs, 4>(tile, piece, to, next, out);
      if (now == 3) dot_piece<Element, kOutputs, 3>(tile, piece, to, next, out);
      if (now == 2) dot_piece<Element, kOutputs, 2>(tile, piece, to, next, out);
      if (now == 1) dot_piece<Element, kOutputs, 1>(tile, piece, to, next, out);
    }
    begin = end;
  } while (begin < tile.n);
}

/// Weight rows at once. One input waits for memory, which is fastest when one row after the other
/// passes.
std::uint32_t outputs_at_once(const DotTile& tile) {
  if (tile.n_inputs == 1) return 1;
  return tile.n_outputs == kDotOutputs && tile.n_inputs > 2 ? kDotOutputs : 3;
}

/// How often the weights of a tile pass.
std::uint32_t passes_of(const DotTile& tile) {
  const std::uint32_t left = tile.n_inputs % kInputsAtOnce;
  return tile.n_inputs / kInputsAtOnce * 2 + (left == 3 ? 2u : left > 0 ? 1u : 0u);
}

}  // namespace

void dot_tile(const DotTile& tile, DotProducts& out) {
  const std::uint32_t outputs = outputs_at_once(tile);
  const std::uint32_t repeats = (tile.n_outputs + outputs - 1) / outputs;
  NextRows next(tile, passes_of(tile) * repeats, tile.n_inputs == 1);
  with_element_of(tile, [&]<class Element>(std::type_identity<Element>) {
    if (outputs == kDotOutputs) return dot_outputs<Element, kDotOutputs>(tile, 0, next, out);
    std::uint32_t done = 0;
    for (; outputs == 3 && done + 3 <= tile.n_outputs; done += 3)
      dot_outputs<Element, 3>(tile, done, next, out);
    for (; done < tile.n_outputs; ++done) dot_outputs<Element, 1>(tile, done, next, out);
  });
}

}  // namespace leasehold::avx512
