/// Requests weights from memory before a dot reaches them.
#pragma once

#include <algorithm>

#include "ipc/segment/segment_layout.hpp"
#include "kernels/cpu/row_kernels.hpp"
#include "kernels/cpu/tiling.hpp"
#include "kernels/numerics/int8_order.hpp"
#include "kernels/numerics/ordered_sum.hpp"
#include "kernels/quant/group_format.hpp"

namespace leasehold {

/// How far ahead of a block weights are requested. Measured: a block of 256 is as large as what a
/// processor prefetches by itself; without these requests blocks arrive at a third of the memory's
/// bandwidth.
inline constexpr std::size_t kPrefetchBytes = 12288;

/// Requests a tile's next rows while the tile is multiplied: some lines with each 32 elements, in
/// the order of their addresses. Memory is twice as fast in this order as row by row.
class NextRows {
 public:
  /// `passes` is how often dots go through the elements of the tile's rows. If `are_in_order`, rows
  /// are read in the order of their addresses and need not be requested further ahead than
  /// kPrefetchBytes.
  NextRows(const DotTile& tile, std::uint32_t passes, bool are_in_order)
      : line_(are_in_order ? std::min(tile.next, tile.weights[0] + kPrefetchBytes) : tile.next) {
    if (tile.next_bytes == 0) return;
    const std::size_t steps = std::max(tile.n / kSumLanes, std::size_t{1}) * std::max(passes, 1u);
    per_step_ = static_cast<std::uint32_t>((tile.next_bytes + steps * kCacheLineBytes - 1) /
                                           (steps * kCacheLineBytes));
  }
  bool requests() const { return per_step_ > 0; }
  void step() {
    for (std::uint32_t i = 0; i < per_step_; ++i, line_ += kCacheLineBytes)
      __builtin_prefetch(line_);
  }

 private:
  const std::byte* line_;
  std::uint32_t per_step_ = 0;
};

/// Rows of B (kernels/low_rank_args.hpp) that are requested from memory while others are added.
struct RowsOfB {
  const std::byte* first;
  std::size_t stride_bytes;

  /// What a tile reads after its first `k` rows: its other rows, then the next tile's.
  static RowsOfB after(const LowRankTile& tile, std::uint32_t k, std::size_t stride_bytes) {
    if (k < tile.rank || tile.next == nullptr)
      return {tile.b + k % tile.rank * stride_bytes, stride_bytes};
    return {tile.next, tile.next_stride_bytes};
  }
  /// The same rows, `bytes` further on.
  RowsOfB from(std::size_t bytes) const { return {first + bytes, stride_bytes}; }
  /// Requests bytes [at, at + size) of row `k`. Other addresses than B's do no harm.
  [[gnu::always_inline]] void request(std::uint32_t k, std::size_t at, std::size_t size) const {
    const std::byte* from = first + k * stride_bytes + at;
#pragma GCC unroll 4
    for (std::size_t line = 0; line < size; line += kCacheLineBytes)
      __builtin_prefetch(from + line);
  }
};

/// Bytes of B between those that are added and those that are requested, in all rows together.
/// Measured for 4 and for 16 rows at a time: half and twice as many bytes take longer.
inline constexpr std::size_t kBytesOfBAhead = 8192;

/// How some rows of B are added to the outputs of a single row: in three parts. Each part requests
/// as many bytes as it adds.
struct StreamsOfB {
  struct Part {
    Span32 outputs;
    RowsOfB next;
  };
  /// What is added at once.
  struct Shape {
    std::uint32_t rows;
    std::uint32_t element_bytes;
    std::uint32_t outputs;  ///< A multiple of `narrow`.
    std::uint32_t narrow;
  };
  Part begin;   ///< Requests the rows' later outputs.
  Part end;     ///< Requests the first outputs of the rows that are added next.
  Part narrow;  ///< The rest, fewer outputs than Shape::outputs.

  /// From row `k` of the tile on.
  static StreamsOfB plan(const LowRankTile& tile, std::uint32_t k, Shape at_once) {
    const std::size_t stride_bytes = tile.stride * at_once.element_bytes;
    const RowsOfB own = RowsOfB::after(tile, k, stride_bytes);
    const RowsOfB next = RowsOfB::after(tile, k + at_once.rows, stride_bytes);
    const std::uint32_t whole = tile.n_outputs / at_once.outputs * at_once.outputs;
    const auto ahead =
        std::min<std::uint32_t>(kBytesOfBAhead / (at_once.rows * at_once.element_bytes), whole);
    const std::size_t ahead_bytes = std::size_t{ahead} * at_once.element_bytes;
    return {.begin = {{0, whole - ahead}, own.from(ahead_bytes)},
            .end = {{whole - ahead, whole}, next},
            .narrow = {{whole, tile.n_outputs / at_once.narrow * at_once.narrow},
                       next.from(ahead_bytes)}};
  }
};

/// Requests a strip's share of the data kPrefetchBytes after the block. Addresses past the matrix
/// do no harm.
template <TensorType kType>
[[gnu::always_inline]] inline void prefetch_strip(const std::byte* block, std::uint32_t strip) {
  constexpr GroupFormat kFormat = group_format(kType);
  constexpr std::uint32_t kShareBytes = kFormat.size_bytes() / (kFormat.elements / kInt8Strip);
  const std::byte* from = block + kPrefetchBytes + strip * kShareBytes;
#pragma GCC unroll 8
  for (std::size_t at = 0; at < kShareBytes; at += kCacheLineBytes) __builtin_prefetch(from + at);
}

}  // namespace leasehold
