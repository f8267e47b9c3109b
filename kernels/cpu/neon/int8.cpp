#include "kernels/cpu/neon/int8.hpp"

#include <algorithm>

#include "kernels/cpu/group_dots.hpp"
#include "kernels/cpu/neon/super_blocks.hpp"

namespace leasehold::neon {
namespace {

/// The most rows of x whose sums of a block and of a chunk fit the registers.
constexpr std::uint32_t kRegisterRows = 2;

/// One register for each quarter of a group.
using Integers = int32x4_t[kQuarters];
using Floats = float32x4_t[kQuarters];

/// Adds the products of a strip's elements with the strip of each row.
template <TensorType kType, int kRows>
[[gnu::always_inline, gnu::target("arch=armv8.2-a+dotprod")]] inline void add_strip(
    const std::byte* block, std::uint32_t strip, const RoundedRow* x, std::size_t first,
    Integers (&sums)[kRows]) {
  int8x16_t q[kRows];
#pragma GCC unroll 2
  for (int r = 0; r < kRows; ++r) q[r] = vld1q_s8(x[r].q + first + strip * kInt8Strip);
#pragma GCC unroll 4
  for (std::uint32_t quarter = 0; quarter < kQuarters; ++quarter) {
    int8x16_t elements[4];
    load_elements<kType>(block + quarter * kQuarterPlane, strip, elements);
#pragma GCC unroll 2
    for (int r = 0; r < kRows; ++r) {
      int32x4_t& sum = sums[r][quarter];
      sum = vdotq_laneq_s32(sum, elements[0], q[r], 0);
      sum = vdotq_laneq_s32(sum, elements[1], q[r], 1);
      sum = vdotq_laneq_s32(sum, elements[2], q[r], 2);
      sum = vdotq_laneq_s32(sum, elements[3], q[r], 3);
    }
  }
}

/// Adds the products of a quarter of a block, times its scales and the scale of x, to the chunk.
template <TensorType kType>
[[gnu::always_inline]] inline void end_block(const std::byte* block, std::uint32_t quarter, float d,
                                             int32x4_t products, int32x4_t sums,
                                             float32x4_t& chunk) {
  const float32x4_t scales = vmulq_n_f32(load_scales<kType>(block, quarter), d);
  chunk = vfmaq_f32(chunk, scales, vcvtq_f32_s32(products));
  if constexpr (group_format(kType).has_min) {
    const std::byte* minima = block + kGroupRows * 2 + std::size_t{quarter} * kQuarterRows * 2;
    chunk = vfmaq_f32(chunk, vmulq_n_f32(load_halves(minima), d), vcvtq_f32_s32(sums));
  }
}

/// Adds a block of 32 to the chunks.
template <TensorType kType, int kRows>
[[gnu::always_inline, gnu::target("arch=armv8.2-a+dotprod")]] inline void add_block(
    const std::byte* block, std::uint32_t b, const RoundedRow* x, Floats (&chunk)[kRows]) {
  Integers sums[kRows] = {};
#pragma GCC unroll 2
  for (std::uint32_t strip = 0; strip < 2; ++strip)
    add_strip<kType, kRows>(block, strip, x, std::size_t{b} * kMinInt8Block, sums);
#pragma GCC unroll 2
  for (int r = 0; r < kRows; ++r) {
    const std::int16_t* strips = x[r].sums + std::size_t{b} * 2;
#pragma GCC unroll 4
    for (std::uint32_t quarter = 0; quarter < kQuarters; ++quarter)
      end_block<kType>(block, quarter, x[r].scale[b], sums[r][quarter],
                       vdupq_n_s32(strips[0] + strips[1]), chunk[r][quarter]);
  }
}

/// Adds a block of 256 to the chunks.
template <TensorType kType, int kRows>
[[gnu::always_inline, gnu::target("arch=armv8.2-a+dotprod")]] inline void add_super_block(
    const std::byte* block, std::uint32_t b, const RoundedRow* x, Floats (&chunk)[kRows]) {
  constexpr GroupFormat kFormat = group_format(kType);
  constexpr std::uint32_t kStrips = kFormat.sub_block / kInt8Strip;
  SubBlocks sub[kQuarters];
#pragma GCC unroll 4
  for (std::uint32_t quarter = 0; quarter < kQuarters; ++quarter)
    sub[quarter] = load_sub_blocks<kType>(block, quarter);
  Integers products[kRows] = {};
  Integers minima[kRows] = {};
  for (std::uint32_t s = 0; s < kFormat.elements / kFormat.sub_block; ++s) {
    Integers sums[kRows] = {};
#pragma GCC unroll 2
    for (std::uint32_t strip = s * kStrips; strip < (s + 1) * kStrips; ++strip)
      add_strip<kType, kRows>(block, strip, x, std::size_t{b} * kFormat.elements, sums);
#pragma GCC unroll 2
    for (int r = 0; r < kRows; ++r) {
      const std::int16_t* strips = x[r].sums + std::size_t{b} * 16 + s * kStrips;
      const std::int32_t sum = kStrips == 1 ? strips[0] : strips[0] + strips[kStrips - 1];
#pragma GCC unroll 4
      for (std::uint32_t quarter = 0; quarter < kQuarters; ++quarter) {
        products[r][quarter] =
            vmlaq_s32(products[r][quarter], sums[r][quarter], number_of(sub[quarter].scales, s));
        if constexpr (kFormat.has_min)
          minima[r][quarter] =
              vmlsq_n_s32(minima[r][quarter], number_of(sub[quarter].minima, s), sum);
      }
    }
  }
#pragma GCC unroll 2
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (std::uint32_t quarter = 0; quarter < kQuarters; ++quarter)
      end_block<kType>(block, quarter, x[r].scale[b], products[r][quarter], minima[r][quarter],
                       chunk[r][quarter]);
}

/// Multiplies a chunk of a group with kRows rows.
template <TensorType kType, int kRows>
[[gnu::target("arch=armv8.2-a+dotprod")]] void dot_chunk(const std::byte* group, Span32 blocks,
                                                         const RoundedRow* x, float* out) {
  constexpr std::size_t kBlockBytes = group_format(kType).size_bytes();
  Floats chunk[kRows] = {};
  for (std::uint32_t b = blocks.begin; b < blocks.end; ++b) {
    const std::byte* block = group + b * kBlockBytes;
    if constexpr (group_format(kType).has_sub_blocks())
      add_super_block<kType, kRows>(block, b, x, chunk);
    else
      add_block<kType, kRows>(block, b, x, chunk);
  }
#pragma GCC unroll 2
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (std::uint32_t quarter = 0; quarter < kQuarters; ++quarter) {
      float* to = out + r * kGroupRows + quarter * kQuarterRows;
      const float32x4_t sum = chunk[r][quarter];
      vst1q_f32(to, blocks.begin == 0 ? sum : vaddq_f32(vld1q_f32(to), sum));
    }
}

template <TensorType kType>
void dot_group(const std::byte* group, const Int8Tile& tile, float* out) {
  for (ChunkRows at(tile.n_in / group_format(kType).elements, tile.n_rows); !at.is_done();) {
    const std::uint32_t now = std::min(at.left(), kRegisterRows);
    float* to = out + std::size_t{at.row()} * kGroupRows;
    if (now == 1)
      dot_chunk<kType, 1>(group, at.blocks(), tile.x + at.row(), to);
    else
      dot_chunk<kType, kRegisterRows>(group, at.blocks(), tile.x + at.row(), to);
    at.pass(now);
  }
}

}  // namespace

void dot_groups_int8(const Int8Tile& tile) {
  each_group(tile, [&]<TensorType kType>(const std::byte* group, float* out) {
    dot_group<kType>(group, tile, out);
  });
}

}  // namespace leasehold::neon
