/// The loops over a tile in int8 arithmetic, the same for the SIMD paths that multiply one group at
/// a time.
///
/// They are inlined into functions of a path, whose instruction set they get.
#pragma once

#include <algorithm>

#include "kernels/cpu/row_kernels.hpp"
#include "kernels/cpu/tiling.hpp"
#include "kernels/numerics/int8_order.hpp"

namespace leasehold {

/// Goes through the chunks of a group, and in each chunk through the rows, so that memory supplies
/// the chunk once for all rows.
class ChunkRows {
 public:
  /// Precondition: n_blocks and n_rows are at least 1.
  [[gnu::always_inline]] ChunkRows(std::uint32_t n_blocks, std::uint32_t n_rows)
      : n_blocks_(n_blocks), n_rows_(n_rows), per_chunk_(int8_chunk_blocks(n_blocks)) {}

  [[gnu::always_inline]] bool is_done() const { return begin_ >= n_blocks_; }
  [[gnu::always_inline]] Span32 blocks() const {
    return {begin_, std::min(begin_ + per_chunk_, n_blocks_)};
  }
  /// The first row that is not multiplied with the chunk yet, and how many there are.
  [[gnu::always_inline]] std::uint32_t row() const { return row_; }
  [[gnu::always_inline]] std::uint32_t left() const { return n_rows_ - row_; }
  /// The next rows are multiplied.
  [[gnu::always_inline]] void pass(std::uint32_t rows) {
    row_ += rows;
    if (row_ < n_rows_) return;
    row_ = 0;
    begin_ += per_chunk_;
  }

 private:
  std::uint32_t n_blocks_;
  std::uint32_t n_rows_;
  std::uint32_t per_chunk_;
  std::uint32_t begin_ = 0;
  std::uint32_t row_ = 0;
};

/// Calls `dot<kType>(group, out)` for each group of the tile, where `out` is [n_rows, kGroupRows].
template <class Dot>
void each_group(const Int8Tile& tile, Dot&& dot) {
  const std::uint64_t group_bytes = row_group_bytes(tile.type, tile.n_in);
  visit_group_type(tile.type, [&]<TensorType kType> {
    for (std::uint32_t g = 0; g < tile.n_groups; ++g)
      dot.template operator()<kType>(tile.groups + g * group_bytes, tile.out[g][0]);
  });
}

}  // namespace leasehold
