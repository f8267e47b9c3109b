/// The blocks of one sequence, in order of position, and the blocks of its record.
///
/// Blocks come from one lease's pool and go back to it all at once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "worker/kv/block_pool.hpp"

namespace leasehold {

class BlockTable {
 public:
  /// A block holds `tokens_per_block` positions.
  explicit BlockTable(std::uint32_t tokens_per_block) : tokens_per_block_(tokens_per_block) {}

  /// Takes the blocks for positions 0 … n_positions - 1, all or none. Errors: OutOfBlocks, with the
  /// number of missing blocks.
  Result<void> reserve(std::uint32_t n_positions, BlockPool& pool);

  /// Takes `count` blocks for the sequence record. Precondition: called once.
  Result<void> reserve_record(std::uint32_t count, BlockPool& pool);

  /// Makes positions 0 … n_positions - 1 final.
  void commit(std::uint32_t n_positions);

  /// Gives every block back to the pool; after that nothing may be reserved.
  void free(BlockPool& pool);

  std::uint32_t committed() const { return committed_; }
  std::span<const BlockId> blocks() const { return blocks_; }
  std::span<const BlockId> record_blocks() const { return record_blocks_; }

 private:
  std::uint32_t tokens_per_block_;
  std::uint32_t committed_ = 0;
  bool is_freed_ = false;
  std::vector<BlockId> blocks_;
  std::vector<BlockId> record_blocks_;
};

}  // namespace leasehold
