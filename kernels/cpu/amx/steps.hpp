/// The steps in which a row of blocks is multiplied: pure counting.
///
/// A *piece* is what one product of tiles covers: a block of 32, or a sub-block of a block of 256.
/// A step is up to four consecutive pieces of one chunk (kernels/numerics/int8_order.hpp), with one
/// tile of sums per piece.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/tiling.hpp"
#include "kernels/numerics/int8_order.hpp"
#include "kernels/quant/group_format.hpp"

namespace leasehold::amx {

inline constexpr std::uint32_t kStepPieces = 4;

constexpr std::uint32_t piece_elements(TensorType type) {
  const GroupFormat format = group_format(type);
  return format.has_sub_blocks() ? format.sub_block : format.elements;
}
/// Pieces of a block: one, or all its sub-blocks, which fill whole steps.
constexpr std::uint32_t block_pieces(TensorType type) {
  return group_format(type).elements / piece_elements(type);
}

/// A range of pieces. Pieces are numbered from the start of the row.
struct Step {
  Span32 pieces = {};
  Span32 chunk = {};  ///< The pieces of the step's chunk.

  constexpr std::uint32_t count() const { return pieces.end - pieces.begin; }
  constexpr bool is_empty() const { return count() == 0; }
  constexpr bool begins_chunk() const { return pieces.begin == chunk.begin; }
  constexpr bool ends_chunk() const { return pieces.end == chunk.end; }
  constexpr bool is_in_first_chunk() const { return chunk.begin == 0; }
};

class Steps {
 public:
  constexpr Steps(TensorType type, std::uint32_t n_in)
      : n_pieces_(n_in / piece_elements(type)),
        per_chunk_(int8_chunk_blocks(n_in / group_format(type).elements) * block_pieces(type)) {}
  constexpr Step first() const { return step(0, {0, std::min(per_chunk_, n_pieces_)}); }
  /// The step after `last`; empty after the final step.
  constexpr Step after(const Step& last) const {
    const std::uint32_t begin = last.pieces.end;
    if (begin != last.chunk.end) return step(begin, last.chunk);
    return step(begin, {begin, std::min(begin + per_chunk_, n_pieces_)});
  }

 private:
  static constexpr Step step(std::uint32_t begin, Span32 chunk) {
    return {{begin, std::min(begin + kStepPieces, chunk.end)}, chunk};
  }

  std::uint32_t n_pieces_;
  std::uint32_t per_chunk_;
};

}  // namespace leasehold::amx
