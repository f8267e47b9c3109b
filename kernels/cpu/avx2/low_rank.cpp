#include "kernels/cpu/avx2/low_rank.hpp"

#include "ipc/segment/segment_layout.hpp"
#include "kernels/cpu/avx2/lanes.hpp"
#include "kernels/cpu/dot_weights.hpp"

namespace leasehold::avx2 {
namespace {

/// Rows that share each load of B, and registers of neighbouring outputs of each of them.
constexpr std::uint32_t kLowRankSharing = 2;
constexpr std::uint32_t kLowRankParts = 4;
/// Rows of B that are read at once for a single row: few enough for a processor to follow them.
constexpr std::uint32_t kLowRankStreams = 4;

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
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline void add_block(const LowRankTile& tile,
                                                                           std::uint32_t row,
                                                                           std::uint32_t first) {
  __m256 sums[kR][kP];
  request_outputs<kR, kP>(tile, row, first);
#pragma GCC unroll 4
  for (std::uint32_t i = 0; i < kR; ++i)
#pragma GCC unroll 4
    for (std::uint32_t p = 0; p < kP; ++p)
      sums[i][p] = load8(tile.out[row + i] + first + p * kWidth);
  const auto* b = reinterpret_cast<const Element*>(tile.b) + first;
  for (std::uint32_t k = 0; k < tile.rank; ++k, b += tile.stride) {
#pragma GCC unroll 4
    for (std::uint32_t p = 0; p < kP; ++p) {
      const __m256 weights = load8(b + p * kWidth);
#pragma GCC unroll 4
      for (std::uint32_t i = 0; i < kR; ++i)
        sums[i][p] = _mm256_fmadd_ps(weights, _mm256_set1_ps(tile.h[row + i][k]), sums[i][p]);
    }
  }
#pragma GCC unroll 4
  for (std::uint32_t i = 0; i < kR; ++i)
#pragma GCC unroll 4
    for (std::uint32_t p = 0; p < kP; ++p)
      _mm256_storeu_ps(tile.out[row + i] + first + p * kWidth, sums[i][p]);
}

/// Adds all rows of B to the outputs of a row from `first` on, one by one.
template <class Element>
[[gnu::target("avx2,fma,f16c")]] void add_singly(const LowRankTile& tile, std::uint32_t row,
                                                 std::uint32_t first) {
  for (std::uint32_t o = first; o < tile.n_outputs; ++o) {
    const auto* b = reinterpret_cast<const Element*>(tile.b) + o;
    for (std::uint32_t k = 0; k < tile.rank; ++k, b += tile.stride)
      tile.out[row][o] = std::fma(as_float(*b), tile.h[row][k], tile.out[row][o]);
  }
}

/// Adds all rows of B to the outputs of kR rows.
template <class Element, std::uint32_t kR>
[[gnu::target("avx2,fma,f16c")]] void add_rows(const LowRankTile& tile, std::uint32_t row) {
  std::uint32_t o = 0;
  for (; o + kLowRankParts * kWidth <= tile.n_outputs; o += kLowRankParts * kWidth)
    add_block<Element, kR, kLowRankParts>(tile, row, o);
  for (; o + kWidth <= tile.n_outputs; o += kWidth) add_block<Element, kR, 1>(tile, row, o);
  for (std::uint32_t i = row; i < row + kR; ++i) add_singly<Element>(tile, i, o);
}

/// Adds kK rows of B from row `k` on to the outputs of one row, as far as whole registers reach.
/// `next` are the rows that are read after these, `next_stride` bytes apart; they are requested
/// from memory, which takes longer than the sums.
template <class Element, std::uint32_t kK>
[[gnu::target("avx2,fma,f16c")]] void add_streams(const LowRankTile& tile, std::uint32_t row,
                                                  std::uint32_t k, const std::byte* next,
                                                  std::size_t next_stride) {
  const Element* b[kK];
  __m256 h[kK];
#pragma GCC unroll 4
  for (std::uint32_t j = 0; j < kK; ++j) {
    b[j] = reinterpret_cast<const Element*>(tile.b) + (k + j) * tile.stride;
    h[j] = _mm256_set1_ps(tile.h[row][k + j]);
  }
  float* out = tile.out[row];
  for (std::uint32_t o = 0; o + kWidth <= tile.n_outputs; o += kWidth) {
    __m256 sum = load8(out + o);
#pragma GCC unroll 4
    for (std::uint32_t j = 0; j < kK; ++j) {
      if (next != nullptr) __builtin_prefetch(next + j * next_stride + o * sizeof(Element));
      sum = _mm256_fmadd_ps(load8(b[j] + o), h[j], sum);
    }
    _mm256_storeu_ps(out + o, sum);
  }
}

/// Adds all rows of B to the outputs of one row. Memory is the limit, so B is read in the order of
/// its addresses.
template <class Element>
[[gnu::target("avx2,fma,f16c")]] void add_alone(const LowRankTile& tile, std::uint32_t row) {
  const std::size_t stride = tile.stride * sizeof(Element);
  std::uint32_t k = 0;
  for (; k + kLowRankStreams <= tile.rank; k += kLowRankStreams) {
    const bool is_last = k + 2 * kLowRankStreams > tile.rank;
    add_streams<Element, kLowRankStreams>(
        tile, row, k, is_last ? tile.next : tile.b + (k + kLowRankStreams) * stride,
        is_last ? tile.next_stride_bytes : stride);
  }
  for (; k < tile.rank; ++k) add_streams<Element, 1>(tile, row, k, nullptr, 0);
  add_singly<Element>(tile, row, tile.n_outputs / kWidth * kWidth);
}

}  // namespace

void add_low_rank(const LowRankTile& tile) {
  with_element_of(tile.type, [&]<class Element>(std::type_identity<Element>) {
    std::uint32_t row = 0;
    for (; row + kLowRankSharing <= tile.n_rows; row += kLowRankSharing)
      add_rows<Element, kLowRankSharing>(tile, row);
    if (row < tile.n_rows) add_alone<Element>(tile, row);
  });
}

}  // namespace leasehold::avx2
