/// How the recurrent state of a sequence lies in blocks of the KV pool. Layers without attention
/// keep a state of a fixed size instead of keys and values per position. Plain data; nothing here
/// owns memory. C++20-clean.
///
/// A copy of the state is a list of `blocks()` blocks. It consists of *pieces*, and each piece lies
/// inside one block. The engine keeps two copies per sequence: a step reads one and writes the
/// other, so a step that is refused or repeated never damages the state. All values are f32.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ipc/segment/leased.hpp"

namespace leasehold {

/// The state of one layer: a piece per head, then a piece with the latest inputs of the layer's
/// causal convolution. Pieces of no elements do not exist; a layer with attention has no piece.
struct StateShape {
  std::uint32_t n_heads = 0;
  std::uint32_t head_floats = 0;         ///< A matrix per head.
  std::uint32_t convolution_floats = 0;  ///< [taps - 1, channels], the oldest input first

  constexpr bool operator==(const StateShape&) const = default;
};

/// The place of a piece in a copy of the state.
struct StatePiece {
  std::uint32_t block = 0;         ///< Index in the list of the copy's blocks.
  std::uint32_t offset_bytes = 0;  ///< From the start of the block; a multiple of 64.

  constexpr bool operator==(const StatePiece&) const = default;
};

/// The two copies of one sequence in a step, each a list of StateLayout::blocks() blocks. No block
/// is in both. An empty `from` is a state of zeros: the sequence starts with the step's first row.
/// A step writes every piece of `to`, and no byte between pieces.
struct StateTableView {
  std::span<const Leased<const std::byte>> from;
  std::span<const Leased<std::byte>> to;
};

/// The copies of the state that each sequence has.
inline constexpr std::uint32_t kStateCopies = 2;

/// Where the pieces of all layers lie. Without pieces, `blocks()` is 0.
class StateLayout {
 public:
  static constexpr std::uint64_t kAlignmentBytes = 64;

  static constexpr std::uint64_t aligned(std::uint64_t size_bytes) {
    return (size_bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
  }
  /// The size of the largest piece, aligned; 0 without pieces.
  static std::uint64_t largest_piece_bytes(std::span<const StateShape> layers) {
    std::uint64_t largest = 0;
    for (const StateShape& layer : layers) {
      const std::uint32_t head = layer.n_heads > 0 ? layer.head_floats : 0;
      largest = std::max<std::uint64_t>(largest, std::max(head, layer.convolution_floats));
    }
    return aligned(largest * sizeof(float));
  }

  StateLayout() = default;
  /// Places the pieces one behind the other. A piece that does not fit behind the one before begins
  /// a block. Precondition: `block_size_bytes` is at least largest_piece_bytes(layers).
  StateLayout(std::span<const StateShape> layers, std::uint64_t block_size_bytes) {
    std::uint64_t end = block_size_bytes;  // of the last piece, in its block
    const auto place = [&](std::uint32_t floats) {
      if (floats == 0) return;
      const std::uint64_t size_bytes = aligned(floats * sizeof(float));
      if (end + size_bytes > block_size_bytes) {
        ++blocks_;
        end = 0;
      }
      pieces_.push_back({.block = blocks_ - 1, .offset_bytes = static_cast<std::uint32_t>(end)});
      end += size_bytes;
    };
    for (const StateShape& layer : layers) {
      for (std::uint32_t head = 0; head < layer.n_heads; ++head) place(layer.head_floats);
      place(layer.convolution_floats);
      layer_ends_.push_back(pieces_.size());
    }
  }

  /// The blocks of one copy.
  std::uint32_t blocks() const { return blocks_; }
  /// The pieces of a layer: its heads, then its convolution. Valid as long as the layout.
  std::span<const StatePiece> pieces(std::uint32_t layer) const {
    if (layer >= layer_ends_.size()) return {};
    const std::size_t begin = layer == 0 ? 0 : layer_ends_[layer - 1];
    return std::span(pieces_).subspan(begin, layer_ends_[layer] - begin);
  }

  bool operator==(const StateLayout&) const = default;

 private:
  std::vector<StatePiece> pieces_;       // layer by layer
  std::vector<std::size_t> layer_ends_;  // [n_layers]: the index in pieces_ behind the layer's last
  std::uint32_t blocks_ = 0;
};

}  // namespace leasehold
