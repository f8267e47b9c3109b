/// Int8 dots with tiles: each product covers a piece (steps.hpp) of a group and all rows of x.
///
/// While the products of a step are computed, the codes of the next step are unpacked, and the sums
/// of the previous step are folded. Neither waits for the result of a tile instruction.
#pragma once

#include <immintrin.h>

#include <cstring>

#include "kernels/cpu/amx/fold.hpp"
#include "kernels/cpu/amx/int8.hpp"
#include "kernels/cpu/amx/tiles.hpp"
#include "kernels/cpu/avx512/int8.hpp"
#include "kernels/cpu/prefetch.hpp"

namespace leasehold::amx {

/// Elements of a row in a step, at most.
inline constexpr std::uint32_t kStepElements = kStepPieces * 32;

struct alignas(64) Scratch {
  std::byte codes[2][kStepElements * kGroupRows];
  ProductTile products[2][kStepPieces];
  std::int8_t gathered[kInt8TileRows][kStepElements];
  FoldScratch fold;
};

/// Elements of the rows of x as TILELOADD reads them.
struct RowsOfX {
  const std::int8_t* first;
  std::size_t stride;
};

/// The distance between the tile's rows; 0 if there is one row, or if the distances differ.
inline std::size_t stride_of(const Int8Tile& tile) {
  const auto address = [&](std::uint32_t r) {
    return reinterpret_cast<std::uintptr_t>(tile.x[r].q);
  };
  if (tile.n_rows < 2 || address(1) <= address(0)) return 0;
  const std::uintptr_t stride = address(1) - address(0);
  for (std::uint32_t r = 2; r < tile.n_rows; ++r)
    if (address(r) - address(r - 1) != stride) return 0;
  return stride;
}

/// `n` elements of each row from `first` on. Rows without a constant distance are copied: the rows
/// of an expert may be any rows of the batch.
inline RowsOfX rows_of(const Int8Tile& tile, std::size_t stride, std::size_t first, std::size_t n,
                       Scratch& scratch) {
  if (stride != 0) return {tile.x[0].q + first, stride};
  for (std::uint32_t r = 0; r < tile.n_rows; ++r)
    std::memcpy(scratch.gathered[r], tile.x[r].q + first, n);
  return {scratch.gathered[0], kStepElements};
}

/// Unpacks the elements of a step into factors B, one piece after the other.
template <TensorType kType>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline void
unpack_step(const std::byte* group, const Step& step, std::byte* to) {
  constexpr GroupFormat kFormat = group_format(kType);
  constexpr std::uint32_t kStrips = piece_elements(kType) / kInt8Strip;
  const __m512i offset = _mm512_set1_epi8(static_cast<char>(kFormat.offset));
  for (std::uint32_t piece = step.pieces.begin; piece < step.pieces.end; ++piece) {
    const std::byte* block =
        group + std::size_t{piece / block_pieces(kType)} * kFormat.size_bytes();
#pragma GCC unroll 2
    for (std::uint32_t i = 0; i < kStrips; ++i, to += avx512::kStripBytes) {
      const std::uint32_t strip = piece % block_pieces(kType) * kStrips + i;
      prefetch_strip<kType>(block, strip);
      __m512i codes[4];
      avx512::load_block_codes<kType>(block, strip, codes);
#pragma GCC unroll 4
      for (int quad = 0; quad < 4; ++quad)
        _mm512_store_si512(to + quad * kPlaneBytes, kFormat.offset == 0
                                                        ? codes[quad]
                                                        : _mm512_sub_epi8(codes[quad], offset));
    }
  }
}

/// C = A·B for piece kPiece of a step.
template <class Tiles, std::uint32_t kDepth, int kPiece>
[[gnu::always_inline, gnu::target("amx-tile,amx-int8")]] inline void multiply_piece(
    RowsOfX x, const std::byte* codes) {
  constexpr int kA = kFirstA + kPiece % 2;
  constexpr int kB = kFirstB + kPiece % 2;
  Tiles::template zero<kPiece>();
  Tiles::template load<kA>(x.first + kPiece * kDepth, x.stride);
  Tiles::template load<kB>(codes + kPiece * kDepth * kGroupRows, kPlaneBytes);
  Tiles::template multiply<kPiece, kA, kB>();
}

template <class Tiles, std::uint32_t kDepth>
[[gnu::always_inline, gnu::target("amx-tile,amx-int8")]] inline void multiply_step(
    std::uint32_t n_pieces, RowsOfX x, const std::byte* codes, ProductTile* products) {
  multiply_piece<Tiles, kDepth, 0>(x, codes);
  if (n_pieces > 1) multiply_piece<Tiles, kDepth, 1>(x, codes);
  if (n_pieces > 2) multiply_piece<Tiles, kDepth, 2>(x, codes);
  if (n_pieces > 3) multiply_piece<Tiles, kDepth, 3>(x, codes);
  Tiles::template store<0>(products[0], sizeof products[0][0]);
  if (n_pieces > 1) Tiles::template store<1>(products[1], sizeof products[0][0]);
  if (n_pieces > 2) Tiles::template store<2>(products[2], sizeof products[0][0]);
  if (n_pieces > 3) Tiles::template store<3>(products[3], sizeof products[0][0]);
}

template <class Tiles, TensorType kType>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c,amx-tile,amx-int8")]] void dot_group(
    const std::byte* group, const Int8Tile& tile, GroupDots* out) {
  constexpr std::uint32_t kDepth = piece_elements(kType);
  configure_tiles<Tiles>(tile.n_rows, kDepth);
  const std::size_t stride = stride_of(tile);
  const Steps steps(kType, tile.n_in);
  Scratch scratch;
  const Fold fold{group, tile.x, tile.n_rows, &scratch.fold, out};
  Step next = steps.first();
  Step now;
  Step last;
  for (std::uint32_t i = 0; !next.is_empty() || !now.is_empty() || !last.is_empty(); ++i) {
    unpack_step<kType>(group, next, scratch.codes[i % 2]);
    if (!now.is_empty()) {
      const RowsOfX x = rows_of(tile, stride, std::size_t{now.pieces.begin} * kDepth,
                                now.count() * kDepth, scratch);
      multiply_step<Tiles, kDepth>(now.count(), x, scratch.codes[(i + 1) % 2],
                                   scratch.products[(i + 1) % 2]);
    }
    fold_step<kType>(fold, last, scratch.products[i % 2]);
    last = now;
    now = next;
    next = steps.after(next);
  }
}

/// Multiplies groups with at least kLeastTileRows rows of x. The calling thread's tiles stay
/// configured until release_tiles.
template <class Tiles>
void dot_groups(const Int8Tile& tile) {
  const std::uint64_t group_bytes = row_group_bytes(tile.type, tile.n_in);
  visit_group_type(tile.type, [&]<TensorType kType> {
    for (std::uint32_t g = 0; g < tile.n_groups; ++g)
      dot_group<Tiles, kType>(tile.groups + g * group_bytes, tile, tile.out + g);
  });
}

/// RowKernels::dot_groups_int8. Few rows use AVX-512.
template <class Tiles>
void dot_groups_or_avx512(const Int8Tile& tile) {
  if (tile.n_rows < kLeastTileRows) return avx512::dot_groups_int8(tile);
  dot_groups<Tiles>(tile);
}

}  // namespace leasehold::amx
