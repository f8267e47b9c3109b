#include "kernels/cpu/avx512/low_rank.hpp"

#include "kernels/cpu/avx512/lanes.hpp"
#include "kernels/cpu/dot_weights.hpp"

namespace leasehold::avx512 {
namespace {

/// Registers of neighbouring outputs of several rows, and of a single row.
constexpr std::uint32_t kLowRankParts = 4;
constexpr std::uint32_t kLowRankPartsAlone = 8;
/// Rows that share each load of B.
constexpr std::uint32_t kLowRankSharing = 4;

/// Adds the rows of B to kP registers of outputs of kR rows of the tile.
template <class Element, std::uint32_t kR, std::uint32_t kP>
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline void add_block(
    const LowRankTile& tile, std::uint32_t row, std::uint32_t first) {
  __m512 sums[kR][kP];
#pragma GCC unroll 4
  for (std::uint32_t i = 0; i < kR; ++i)
#pragma GCC unroll 8
    for (std::uint32_t p = 0; p < kP; ++p)
      sums[i][p] = load16(tile.out[row + i] + first + p * kWidth);
  const auto* b = reinterpret_cast<const Element*>(tile.b) + first;
  for (std::uint32_t k = 0; k < tile.rank; ++k, b += tile.stride) {
#pragma GCC unroll 8
    for (std::uint32_t p = 0; p < kP; ++p) {
      const __m512 weights = load16(b + p * kWidth);
#pragma GCC unroll 4
      for (std::uint32_t i = 0; i < kR; ++i)
        sums[i][p] = _mm512_fmadd_ps(weights, _mm512_set1_ps(tile.h[row + i][k]), sums[i][p]);
    }
  }
#pragma GCC unroll 4
  for (std::uint32_t i = 0; i < kR; ++i)
#pragma GCC unroll 8
    for (std::uint32_t p = 0; p < kP; ++p)
      _mm512_storeu_ps(tile.out[row + i] + first + p * kWidth, sums[i][p]);
}

/// Adds all rows of B to the outputs of kR rows. Outputs after the last whole register are added
/// one by one.
template <class Element, std::uint32_t kR, std::uint32_t kP>
[[gnu::target("avx512f,avx512dq,avx2,fma")]] void add_rows(const LowRankTile& tile,
                                                           std::uint32_t row) {
  std::uint32_t o = 0;
  for (; o + kP * kWidth <= tile.n_outputs; o += kP * kWidth)
    add_block<Element, kR, kP>(tile, row, o);
  for (; o + kWidth <= tile.n_outputs; o += kWidth) add_block<Element, kR, 1>(tile, row, o);
  for (std::uint32_t i = row; i < row + kR; ++i)
    for (std::uint32_t left = o; left < tile.n_outputs; ++left) {
      const auto* b = reinterpret_cast<const Element*>(tile.b) + left;
      for (std::uint32_t k = 0; k < tile.rank; ++k, b += tile.stride)
        tile.out[i][left] = std::fma(as_float(*b), tile.h[i][k], tile.out[i][left]);
    }
}

}  // namespace

void add_low_rank(const LowRankTile& tile) {
  with_element_of(tile.type, [&]<class Element>(std::type_identity<Element>) {
    std::uint32_t row = 0;
    for (; row + kLowRankSharing <= tile.n_rows; row += kLowRankSharing)
      add_rows<Element, kLowRankSharing, kLowRankParts>(tile, row);
    for (; row + 2 <= tile.n_rows; row += 2) add_rows<Element, 2, kLowRankParts>(tile, row);
    if (row < tile.n_rows) add_rows<Element, 1, kLowRankPartsAlone>(tile, row);
  });
}

}  // namespace leasehold::avx512
