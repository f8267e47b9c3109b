/// The recurrent state of one sequence, in blocks of its lease: what layers without keys and values
/// keep of the text (kernels/state_layout.hpp).
///
/// There are two copies. A step reads one and writes the other, and its commit exchanges them.
/// After a step that is refused or whose proposals are rejected, the next one therefore starts from
/// the same state again. Before the first commit no copy is valid, and a step starts from the zero
/// state.
///
/// Pure bookkeeping: it never touches memory. A model without such layers has no blocks here.
/// Threads: one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/state_layout.hpp"
#include "worker/kv/block_pool.hpp"

namespace leasehold {

class RecurrentState {
 public:
  /// A copy of the state has `blocks_per_copy` blocks; 0: the model has no recurrent state.
  explicit RecurrentState(std::uint32_t blocks_per_copy) : blocks_per_copy_(blocks_per_copy) {}

  bool exists() const { return blocks_per_copy_ > 0; }
  std::uint32_t copy_blocks() const { return blocks_per_copy_; }
  /// Blocks of both copies, reserved or not.
  std::uint32_t total_blocks() const { return kStateCopies * blocks_per_copy_; }

  /// Takes the blocks of both copies, all or none; no copy is valid. Precondition: none is
  /// reserved. Errors: OutOfBlocks.
  Result<void> reserve(BlockPool& pool);
  /// Takes the blocks of the second copy; `valid` is the first one, which belongs to this object
  /// from then on. Preconditions as for `reserve`. Errors: OutOfBlocks.
  Result<void> start_with(std::span<const BlockId> valid, BlockPool& pool);
  /// Like `reserve`, for a state that the caller fills: `from` is valid if `is_valid`.
  /// Precondition: the pool has the free blocks.
  void take_filled(BlockPool& pool, bool is_valid);
  void release(BlockPool& pool);
  /// The blocks of the valid copy, which belong to the caller from then on. Only `release` may
  /// follow. Precondition: a copy is valid.
  std::vector<BlockId> take_valid();

  /// The step wrote `to`, which is valid from now on. Precondition: the blocks are reserved, or
  /// the model has no state.
  void commit();
  /// The next step starts from the zero state.
  void reset() { valid_.reset(); }

  /// The copy that holds the state of the committed positions; empty means the zero state.
  std::span<const BlockId> from() const {
    return valid_ ? copy(*valid_) : std::span<const BlockId>{};
  }
  /// The copy that the next step writes; empty without a state.
  std::span<const BlockId> to() const { return copy(valid_ ? 1 - *valid_ : 0); }
  /// Blocks of both copies, the first copy first; empty unless they are reserved.
  std::span<const BlockId> blocks() const { return blocks_; }
  /// Index of the copy that is valid once a step commits `n_rows` rows; nothing for the zero state.
  std::optional<std::uint32_t> valid_after(std::uint32_t n_rows) const {
    if (n_rows == 0 || !exists()) return valid_;
    return valid_ ? 1 - *valid_ : 0;
  }

 private:
  std::span<const BlockId> copy(std::uint32_t index) const {
    if (blocks_.empty()) return {};
    return std::span(blocks_).subspan(std::size_t{index} * blocks_per_copy_, blocks_per_copy_);
  }

  std::uint32_t blocks_per_copy_;
  std::vector<BlockId> blocks_;
  std::optional<std::uint32_t> valid_;
};

}  // namespace leasehold
