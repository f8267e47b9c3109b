#include "kernels/cpu/avx512/rows.hpp"

#include <algorithm>
#include <utility>

#include "kernels/cpu/avx512/fold.hpp"
#include "kernels/cpu/avx512/lanes.hpp"
#include "kernels/cpu/dot_weights.hpp"
#include "kernels/cpu/prefetch.hpp"

namespace leasehold::avx512 {
namespace {

/// Inputs that are multiplied with six weight rows at once.
constexpr std::uint32_t kInputsAtOnce = 4;

/// How many of the two registers with the 32 lanes of a dot are summed at once. Six rows by four
/// inputs sum one after the other, because one register of each of their 24 dots fills the register
/// file beside a weight and the inputs. Fewer dots sum both, so that weights are read once.
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

/// The length of the chunks in which rows are multiplied with all inputs of a tile. Weights stay in
/// the L1 cache while inputs are read, and fewer chunks move fewer lanes to memory and back.
/// Chunks of a row are equally long, because a short one moves as many lanes.
std::size_t chunk_of(const DotTile& tile) {
  const bool is_short = tile.type == TensorType::F32 || tile.n_inputs <= 8;
  const std::size_t most = is_short ? 1024 : 1632;
  if (tile.n <= most || tile.n_inputs <= 2) return tile.n;  // few inputs: rows in order
  const std::size_t chunks = (tile.n + most - 1) / most;
  return ((tile.n + chunks - 1) / chunks + kSumLanes - 1) / kSumLanes * kSumLanes;
}

/// A chunk of the rows of a tile with some of its inputs.
struct Piece {
  std::size_t begin;
  std::size_t end;
  std::uint32_t first_output;
  std::uint32_t first_input;
};

/// The weight rows and inputs of a piece, from lane 16·part on. Dot o·kInputs + i belongs to row o
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

/// Adds a step of 32 elements to the sums: kParts registers of each dot's lanes.
template <class Element, int kOutputs, int kInputs, int kSums>
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline void add_step(
    const Operands<Element, kOutputs, kInputs>& from, std::size_t at, __m512 (&sums)[kSums]) {
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

/// Adds the whole steps of a piece to the sums.
template <class Element, int kOutputs, int kInputs, int kSums>
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline void add_steps(
    const Operands<Element, kOutputs, kInputs>& from, const Piece& piece, NextRows& next,
    __m512 (&sums)[kSums]) {
  const std::size_t end = piece.end / kSumLanes * kSumLanes;
  if (kOutputs == 6 && !next.requests()) {
    for (std::size_t at = piece.begin; at < end; at += kSumLanes) add_step(from, at, sums);
    return;
  }
  NextRows requests = next;
  for (std::size_t at = piece.begin; at < end; at += kSumLanes) {
    requests.step();
    add_step(from, at, sums);
  }
  next = requests;
}

/// Adds the elements after the last whole step, if any. A lane without such an element keeps its
/// bits.
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

template <int kSums>
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline void store_sums(
    const __m512 (&sums)[kSums], __m512* to) {
#pragma GCC unroll 24
  for (int s = 0; s < kSums; ++s) to[s] = sums[s];
}

/// Folds dots that are reduced to sixteen lanes, and stores them as the outputs of a group from
/// `first` on.
template <int kOutputs, int kInputs>
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline void fold_dots(
    const __m512 (&dots)[kOutputs * kInputs], std::uint32_t first, float (*out)[kDotOutputGroup]) {
  if constexpr (kOutputs == kDotOutputGroup && kInputs == 4) {  // contiguous in `out`
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

/// Adds a piece to kParts registers of each dot's lanes. `lanes` holds the lanes of the rows'
/// earlier pieces.
template <class Element, int kOutputs, int kInputs, int kSums>
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline void add_part(
    const DotTile& tile, const Piece& piece, std::uint32_t part, const __m512* lanes,
    NextRows& next, __m512 (&sums)[kSums]) {
  load_sums(piece.begin == 0 ? nullptr : lanes, sums);
  const Operands<Element, kOutputs, kInputs> from(tile, piece, part);
  add_steps(from, piece, next, sums);
  add_tail(from, piece, part, sums);
}

/// Adds a piece to the lanes of its dots. Between pieces the lanes are in `lanes` [2, dots]. After
/// the last piece they are folded, without a store of the last registers.
template <class Element, int kOutputs, int kInputs>
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline void dot_piece(
    const DotTile& tile, const Piece& piece, __m512* lanes, NextRows& next, DotProducts& out) {
  using Of = Operands<Element, kOutputs, kInputs>;
  constexpr int kSums = Of::kParts * Of::kDots;
  __m512 sums[kSums];
  add_part<Element, kOutputs, kInputs>(tile, piece, 0, lanes, next, sums);
  __m512* last = lanes;
  if constexpr (Of::kParts == 1) {
    store_sums(sums, lanes);
    last += Of::kDots;
    add_part<Element, kOutputs, kInputs>(tile, piece, 1, last, next, sums);
  }
  if (piece.end < tile.n) return store_sums(sums, last);
  __m512 dots[Of::kDots];
#pragma GCC unroll 24
  for (int d = 0; d < Of::kDots; ++d)
    dots[d] = _mm512_add_ps(Of::kParts == 2 ? sums[d] : lanes[d], sums[kSums - Of::kDots + d]);
  fold_dots<kOutputs, kInputs>(dots, piece.first_output % kDotOutputGroup,
                               out[piece.first_output / kDotOutputGroup] + piece.first_input);
}

/// Weight rows and inputs of a tile: [first, end).
struct DotSpan {
  std::uint32_t first_output;
  std::uint32_t end_output;
  std::uint32_t first_input;
  std::uint32_t end_input;
};

/// Adds a chunk to the dots of a span, whose numbers of rows and inputs are multiples of kOutputs
/// and kInputs. Inputs stay in the L1 cache while weight rows are read. The function is not
/// inline, because a function of one shape keeps its pointers in registers.
template <class Element, int kOutputs, int kInputs>
[[gnu::noinline, gnu::target("avx512f,avx512dq,avx2,fma")]] void dot_pieces(
    const DotTile& tile, const DotSpan& span, Piece piece, __m512* lanes, NextRows& next,
    DotProducts& out) {
  const bool is_whole = piece.end - piece.begin == tile.n;
  for (std::uint32_t i = span.first_input; i < span.end_input; i += kInputs) {
    piece.first_input = i;
    for (std::uint32_t o = span.first_output; o < span.end_output; o += kOutputs) {
      piece.first_output = o;
      dot_piece<Element, kOutputs, kInputs>(tile, piece, lanes, next, out);
    }
    if (!is_whole) lanes += 2 * kOutputs * kInputs;
  }
}

/// Computes the dots of a multiple of kOutputs weight rows, or of just kOutputs rows if these have
/// several chunks.
template <class Element, int kOutputs>
[[gnu::target("avx512f,avx512dq,avx2,fma")]] void dot_outputs(const DotTile& tile,
                                                              const DotSpan& span, NextRows& next,
                                                              DotProducts& out) {
  __m512 lanes[2 * kOutputs * kDotInputs];
  const std::size_t chunk = chunk_of(tile);
  const std::uint32_t n = span.end_input - span.first_input;
  DotSpan fours = span;
  fours.end_input = span.first_input + n / kInputsAtOnce * kInputsAtOnce;
  DotSpan left = span;
  left.first_input = fours.end_input;
  __m512* const left_lanes = lanes + 2 * kOutputs * (fours.end_input - span.first_input);
  std::size_t begin = 0;
  do {
    const Piece piece{begin, std::min(begin + chunk, tile.n), 0, 0};
    dot_pieces<Element, kOutputs, 4>(tile, fours, piece, lanes, next, out);
    if (n % 4 == 3) dot_pieces<Element, kOutputs, 3>(tile, left, piece, left_lanes, next, out);
    if (n % 4 == 2) dot_pieces<Element, kOutputs, 2>(tile, left, piece, left_lanes, next, out);
    if (n % 4 == 1) dot_pieces<Element, kOutputs, 1>(tile, left, piece, left_lanes, next, out);
    begin += chunk;
  } while (begin < tile.n);
}

/// Computes the dots of six weight rows and four inputs in one chunk without a tail.
template <class Element>
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline void dot_whole_piece(
    const DotTile& tile, const Piece& piece, __m512 (&lanes)[24], NextRows& next,
    DotProducts& out) {
  __m512 sums[24];
  load_sums(nullptr, sums);
  add_steps(Operands<Element, 6, 4>(tile, piece, 0), piece, next, sums);
  store_sums(sums, lanes);
  load_sums(nullptr, sums);
  add_steps(Operands<Element, 6, 4>(tile, piece, 1), piece, next, sums);
  __m512 dots[24];
#pragma GCC unroll 24
  for (int d = 0; d < 24; ++d) dots[d] = _mm512_add_ps(lanes[d], sums[d]);
  fold_dots<6, 4>(dots, 0, out[piece.first_output / kDotOutputGroup] + piece.first_input);
}

/// Same as dot_outputs for multiples of six weight rows and four inputs, without tails and with one
/// chunk.
template <class Element>
[[gnu::noinline, gnu::target("avx512f,avx512dq,avx2,fma")]] void dot_without_tail(
    const DotTile& tile, const DotSpan& span, NextRows& next, DotProducts& out) {
  __m512 lanes[24];
  for (std::uint32_t i = span.first_input; i < span.end_input; i += 4)
    for (std::uint32_t o = span.first_output; o < span.end_output; o += 6)
      dot_whole_piece<Element>(tile, {0, tile.n, o, i}, lanes, next, out);
}

/// Computes the dots of the largest multiple of kOutputs weight rows from `first` on. Returns the
/// first row that is left.
template <int kOutputs, class Element>
std::uint32_t dot_multiple(const DotTile& tile, std::uint32_t first, NextRows& next,
                           DotProducts& out) {
  const std::uint32_t end = first + (tile.n_outputs - first) / kOutputs * kOutputs;
  const bool is_chunk = chunk_of(tile) == tile.n;
  DotSpan span{first, end, 0, tile.n_inputs};
  if (kOutputs == 6 && is_chunk && tile.n % kSumLanes == 0) {
    span.end_input = tile.n_inputs / kInputsAtOnce * kInputsAtOnce;
    dot_without_tail<Element>(tile, span, next, out);
    span.first_input = std::exchange(span.end_input, tile.n_inputs);
    if (span.first_input == span.end_input) return end;
  }
  const std::uint32_t step = is_chunk ? end - first : kOutputs;
  for (std::uint32_t o = first; o < end; o += step)
    dot_outputs<Element, kOutputs>(tile, {o, o + step, span.first_input, span.end_input}, next,
                                   out);
  return end;
}

/// Weight rows that are multiplied at once. With one input, memory is the limit, and memory is
/// fastest when rows are read one after the other.
std::uint32_t outputs_at_once(const DotTile& tile) {
  if (tile.n_inputs == 1) return 1;
  return tile.n_outputs >= kDotOutputGroup && tile.n_inputs > 2 ? kDotOutputGroup : 3;
}

/// How often dots go through the weights of a tile.
std::uint32_t passes_of(const DotTile& tile) {
  const std::uint32_t left = tile.n_inputs % kInputsAtOnce;
  return tile.n_inputs / kInputsAtOnce * 2 + (left == 3 ? 2u : left > 0 ? 1u : 0u);
}

}  // namespace

void dot_tile(const DotTile& tile, DotProducts& out) {
  const std::uint32_t most = outputs_at_once(tile);
  NextRows next(tile, passes_of(tile) * ((tile.n_outputs + most - 1) / most), tile.n_inputs == 1);
  with_element_of(tile.type, [&]<class Element>(std::type_identity<Element>) {
    std::uint32_t done = 0;
    if (most == 6) done = dot_multiple<6, Element>(tile, done, next, out);
    if (most >= 3) done = dot_multiple<3, Element>(tile, done, next, out);
    dot_multiple<1, Element>(tile, done, next, out);
  });
}

}  // namespace leasehold::avx512
