#include "kernels/cpu/avx512/low_rank.hpp"

#include "ipc/segment/segment_layout.hpp"
#include "kernels/cpu/avx512/lanes.hpp"
#include "kernels/cpu/dot_weights.hpp"
#include "kernels/cpu/prefetch.hpp"

namespace leasehold::avx512 {
namespace {

/// Rows that share each load of B, and registers of neighbouring outputs of each of them.
constexpr std::uint32_t kLowRankSharing = 4;
constexpr std::uint32_t kLowRankParts = 4;
/// Registers of neighbouring outputs of a single row: a cache line of halves from each row of B.
constexpr std::uint32_t kStreamParts = 2;

/// Requests the outputs that follow kP registers from `first` on. Without this, the sums of the
/// next block would wait for them.
template <std::uint32_t kR, std::uint32_t kP>
[[gnu::always_inline]] inline void request_outputs(const LowRankTile& tile, std::uint32_t row,
                                                   std::uint32_t first) {
  constexpr std::uint32_t kLine = kCacheLineBytes / sizeof(float);
  for (std::uint32_t i = 0; i < kR; ++i)
    for (std::uint32_t o = kP * kWidth; o < 2 * kP * kWidth; o += kLine)
      __builtin_prefetch(tile.out[row + i] + first + o, 1);
}

/// Adds the rows of B to kP registers of outputs of kR rows of the tile.
template <class Element, std::uint32_t kR, std::uint32_t kP>
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline void add_block(
    const LowRankTile& tile, std::uint32_t row, std::uint32_t first) {
  __m512 sums[kR][kP];
  request_outputs<kR, kP>(tile, row, first);
#pragma GCC unroll 4
  for (std::uint32_t i = 0; i < kR; ++i)
#pragma GCC unroll 4
    for (std::uint32_t p = 0; p < kP; ++p)
      sums[i][p] = load16(tile.out[row + i] + first + p * kWidth);
  const auto* b = reinterpret_cast<const Element*>(tile.b) + first;
  for (std::uint32_t k = 0; k < tile.rank; ++k, b += tile.stride) {
#pragma GCC unroll 4
    for (std::uint32_t p = 0; p < kP; ++p) {
      const __m512 weights = load16(b + p * kWidth);
#pragma GCC unroll 4
      for (std::uint32_t i = 0; i < kR; ++i)
        sums[i][p] = _mm512_fmadd_ps(weights, _mm512_set1_ps(tile.h[row + i][k]), sums[i][p]);
    }
  }
#pragma GCC unroll 4
  for (std::uint32_t i = 0; i < kR; ++i)
#pragma GCC unroll 4
    for (std::uint32_t p = 0; p < kP; ++p)
      _mm512_storeu_ps(tile.out[row + i] + first + p * kWidth, sums[i][p]);
}

/// Adds all rows of B to the outputs of a row from `first` on, one by one.
template <class Element>
[[gnu::target("avx512f,avx512dq,avx2,fma")]] void add_singly(const LowRankTile& tile,
                                                             std::uint32_t row,
                                                             std::uint32_t first) {
  for (std::uint32_t o = first; o < tile.n_outputs; ++o) {
    const auto* b = reinterpret_cast<const Element*>(tile.b) + o;
    for (std::uint32_t k = 0; k < tile.rank; ++k, b += tile.stride)
      tile.out[row][o] = std::fma(as_float(*b), tile.h[row][k], tile.out[row][o]);
  }
}

/// Adds all rows of B to the outputs of kR rows.
template <class Element, std::uint32_t kR>
[[gnu::target("avx512f,avx512dq,avx2,fma")]] void add_rows(const LowRankTile& tile,
                                                           std::uint32_t row) {
  std::uint32_t o = 0;
  for (; o + kLowRankParts * kWidth <= tile.n_outputs; o += kLowRankParts * kWidth)
    add_block<Element, kR, kLowRankParts>(tile, row, o);
  for (; o + kWidth <= tile.n_outputs; o += kWidth) add_block<Element, kR, 1>(tile, row, o);
  for (std::uint32_t i = row; i < row + kR; ++i) add_singly<Element>(tile, i, o);
}

/// Adds kK rows of B from row `k` on to outputs of one row, a multiple of kP registers, and
/// requests as many bytes.
template <class Element, std::uint32_t kK, std::uint32_t kP>
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline void add_streams(
    const LowRankTile& tile, std::uint32_t row, std::uint32_t k, const StreamsOfB::Part& part) {
  constexpr std::uint32_t kStep = kP * kWidth;
  const auto* const b = reinterpret_cast<const Element*>(tile.b) + k * tile.stride;
  const float* const h = tile.h[row] + k;
  float* const out = tile.out[row];
  const RowsOfB next = part.next;
  for (std::uint32_t o = part.outputs.begin; o < part.outputs.end; o += kStep) {
    __m512 sums[kP];
#pragma GCC unroll 4
    for (std::uint32_t p = 0; p < kP; ++p) sums[p] = load16(out + o + p * kWidth);
#pragma GCC unroll 16
    for (std::uint32_t j = 0; j < kK; ++j) {
      next.request(j, (o - part.outputs.begin) * sizeof(Element), kStep * sizeof(Element));
#pragma GCC unroll 4
      for (std::uint32_t p = 0; p < kP; ++p)
        sums[p] = _mm512_fmadd_ps(load16(b + j * tile.stride + o + p * kWidth),
                                  _mm512_set1_ps(h[j]), sums[p]);
    }
#pragma GCC unroll 4
    for (std::uint32_t p = 0; p < kP; ++p) _mm512_storeu_ps(out + o + p * kWidth, sums[p]);
  }
}

/// Adds kK rows of B from row `k` on to the outputs of one row, as far as whole registers reach.
template <class Element, std::uint32_t kK>
[[gnu::target("avx512f,avx512dq,avx2,fma")]] void add_rows_of_b(const LowRankTile& tile,
                                                                std::uint32_t row,
                                                                std::uint32_t k) {
  const StreamsOfB streams = StreamsOfB::plan(tile, k,
                                              {.rows = kK,
                                               .element_bytes = sizeof(Element),
                                               .outputs = kStreamParts * kWidth,
                                               .narrow = kWidth});
  add_streams<Element, kK, kStreamParts>(tile, row, k, streams.begin);
  add_streams<Element, kK, kStreamParts>(tile, row, k, streams.end);
  add_streams<Element, kK, 1>(tile, row, k, streams.narrow);
}

/// Adds a multiple of kK rows of B, from row `k` on. Returns the first row that is left.
template <std::uint32_t kK, class Element>
std::uint32_t add_multiple(const LowRankTile& tile, std::uint32_t row, std::uint32_t k) {
  for (; k + kK <= tile.rank; k += kK) add_rows_of_b<Element, kK>(tile, row, k);
  return k;
}

/// Adds all rows of B to the outputs of one row. Memory is the limit, so B is read with few
/// instructions per byte, and each line is requested once.
template <class Element>
[[gnu::target("avx512f,avx512dq,avx2,fma")]] void add_alone(const LowRankTile& tile,
                                                            std::uint32_t row) {
  std::uint32_t k = add_multiple<16, Element>(tile, row, 0);
  k = add_multiple<4, Element>(tile, row, k);
  add_multiple<1, Element>(tile, row, k);
  add_singly<Element>(tile, row, tile.n_outputs / kWidth * kWidth);
}

}  // namespace

void add_low_rank(const LowRankTile& tile) {
  with_element_of(tile.type, [&]<class Element>(std::type_identity<Element>) {
    std::uint32_t row = 0;
    for (; row + kLowRankSharing <= tile.n_rows; row += kLowRankSharing)
      add_rows<Element, kLowRankSharing>(tile, row);
    for (; row + 2 <= tile.n_rows; row += 2) add_rows<Element, 2>(tile, row);
    if (row < tile.n_rows) add_alone<Element>(tile, row);
  });
}

}  // namespace leasehold::avx512
