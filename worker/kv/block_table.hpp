/// The blocks of one sequence, in order of position: those of layers that read all positions, and
/// those of layers with a window (WindowBlocks); and the blocks of its record and of its recurrent
/// state.
///
/// Blocks come from one lease's pool. trim() releases the blocks beyond the text and those that
/// left the window; the others are released all at once. The first blocks may be in the
/// lease's prefix index: other sequences may then read them, and the index keeps them when this
/// sequence ends. All positions in these blocks are committed, so no step writes to them.
///
/// A table may instead start with the blocks of a published text, which lie in a shared lease and
/// are only read. Such a table caches none of its own blocks, because the index of its lease only
/// holds chains that start at a text's first block.
///
/// The blocks that *move* with a sequence are those of committed positions, those of the window of
/// its next row, and the valid copy of its state, in this order. A swapped table holds a copy of
/// them in the lease's swap pool and nothing in the KV pool. A spilled table holds nothing in
/// either pool. The table does the bookkeeping only: the caller makes the returned copies, in
/// order, and fills the blocks of a returning table.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "worker/kv/kv_state.hpp"
#include "worker/kv/prefix_index.hpp"
#include "worker/kv/recurrent_state.hpp"
#include "worker/kv/window_blocks.hpp"

namespace leasehold {

/// A copy of one block, for example between two pools of a lease.
struct BlockCopy {
  BlockId from;
  BlockId to;
  bool operator==(const BlockCopy&) const = default;
};

class BlockTable {
 public:
  /// A block holds `tokens_per_block` positions, and a copy of the recurrent state has
  /// `state_blocks` blocks.
  explicit BlockTable(std::uint32_t tokens_per_block, std::uint32_t state_blocks = 0,
                      const WindowShape& windows = {})
      : tokens_per_block_(tokens_per_block), windows_(windows), recurrent_(state_blocks) {}

  /// Starts the table with the blocks of a chain, whose positions are then committed. Precondition:
  /// the chain is referenced, and so are its blocks of layers with a window from entry
  /// `first_window` on; no position has a block yet.
  void start_with(std::vector<PrefixId> chain, const PrefixIndex& index,
                  std::uint32_t first_window = 0);

  /// Appends a block of the pool that already holds the next `positions`, and those of the layers
  /// with a window. Precondition: `start_with` was the last call.
  void continue_in(BlockId block, std::uint32_t positions, std::span<const BlockId> window = {});

  /// Starts the table with the blocks of a published text. The caller keeps the chain, and its
  /// blocks of layers with a window from entry `first_window` on, referenced until after `free`.
  /// Precondition: as for `start_with`.
  void start_with_published(std::span<const PrefixId> chain, const PrefixIndex& published,
                            std::uint32_t first_window = 0);

  /// Takes the blocks for positions 0 … n_positions - 1, all or none; of layers with a window only
  /// as many as the next step may need. Errors: OutOfBlocks, with the number of missing blocks.
  Result<void> reserve(std::uint32_t n_positions, BlockPool& pool);
  /// The number of blocks that `reserve` takes.
  std::uint32_t missing_blocks(std::uint32_t n_positions) const;

  /// Releases the blocks after positions 0 … n_positions - 1, and those of layers with a window
  /// that no later row reads: cached ones stay in the index, unused by this sequence. Precondition:
  /// these positions include the committed ones.
  void trim(std::uint32_t n_positions, BlockPool& pool, PrefixIndex& index);

  /// Takes `count` blocks for the sequence record. Precondition: called once.
  Result<void> reserve_record(std::uint32_t count, BlockPool& pool);

  /// Takes the blocks of both copies of the state, except those of `valid`: the state of the
  /// committed positions, whose blocks belong to the table from then on; empty if there are none.
  /// Precondition: called once, after the first blocks. Errors: OutOfBlocks.
  Result<void> reserve_state(std::span<const BlockId> valid, BlockPool& pool) {
    return valid.empty() ? recurrent_.reserve(pool) : recurrent_.start_with(valid, pool);
  }

  /// Makes positions 0 … n_positions - 1 final. The table becomes Active. If positions were added,
  /// the state that the step wrote is that of the last one.
  void commit(std::uint32_t n_positions);

  /// Adds to the index the blocks that are full of committed positions, up to the first one whose
  /// text another sequence has added.
  void cache_full(const OwnedText& text, PrefixIndex& index);

  /// Like `cache_full`, for a sequence that ends: where another sequence has added the same text,
  /// the chain continues with the other sequence's block, and this sequence's block is not cached.
  /// A recurrent state is cached with the last committed position, whose block becomes an end of
  /// the index. `free` follows.
  void cache_all(const OwnedText& text, PrefixIndex& index);

  /// Releases every block: cached blocks stay in the index, the others return to the pool. After
  /// that nothing may be reserved. Precondition: neither Swapped nor Spilled.
  void free(BlockPool& pool, PrefixIndex& index);

  /// Takes a swap block for each block that moves, and releases every KV block like `free`.
  /// Precondition: Active without published blocks, and `swap` has a free block for each.
  std::vector<BlockCopy> swap_out(BlockPool& pool, BlockPool& swap, PrefixIndex& index);

  /// Starts the table with the blocks of a chain, takes a KV block for each other swapped block and
  /// the second copy of the state, and releases the swap blocks. Precondition: Swapped; the chain
  /// is referenced; `pool` has the free blocks.
  std::vector<BlockCopy> swap_in(std::vector<PrefixId> chain, BlockPool& pool, BlockPool& swap,
                                 const PrefixIndex& index);

  /// Called once the spill file holds the blocks: releases the swap blocks. Precondition: Swapped.
  void spill(BlockPool& swap);

  /// Like `swap_in`, but the caller fills the blocks that move and are not in the chain.
  /// Precondition: Spilled; the chain is referenced; `pool` has the free blocks.
  void begin_return(std::vector<PrefixId> chain, BlockPool& pool, const PrefixIndex& index);

  /// `is_filled`: all blocks hold their content again. Otherwise only the blocks of the chain do,
  /// and the rows after them are computed again. Precondition: Returning; with a recurrent state,
  /// the chain of `begin_return` was empty.
  void finish_return(bool is_filled);

  /// Releases the swap blocks, if any. Precondition: Swapped or Spilled.
  void free_swapped(BlockPool& swap);

  /// Returns another table for the same positions and record, with blocks of `pool`, and the copies
  /// that fill it. Both tables contain the same published blocks; the copied blocks are not cached.
  /// This table keeps its blocks. Precondition: Allocated or Active; `pool` has `own_blocks` free
  /// blocks.
  std::pair<BlockTable, std::vector<BlockCopy>> copy_to(BlockPool& pool) const;
  /// Number of KV blocks that are not published, plus the blocks of the record and of the state.
  std::uint32_t own_blocks() const {
    return static_cast<std::uint32_t>(blocks_.size() - published_blocks_ + record_blocks_.size() +
                                      recurrent_.blocks().size() +
                                      windows_.between(published_blocks_, windows_.end()).size());
  }

  KvState state() const { return state_; }
  std::uint32_t committed() const { return committed_; }
  std::uint32_t committed_blocks() const { return blocks_for(committed_); }
  /// The KV blocks that move, in their order.
  std::vector<BlockId> moved() const;
  std::span<const BlockId> blocks() const { return blocks_; }
  /// The blocks of positions 0 … n_positions - 1. Precondition: they are reserved.
  std::span<const BlockId> blocks_of(std::uint32_t n_positions) const {
    return blocks().first(blocks_for(n_positions));
  }
  std::span<const BlockId> record_blocks() const { return record_blocks_; }
  const RecurrentState& recurrent() const { return recurrent_; }
  const WindowBlocks& windows() const { return windows_; }
  /// Blocks of the swap pool for the blocks that move, in their order; empty unless Swapped.
  std::span<const BlockId> swapped() const { return swapped_; }
  /// How many of the first blocks belong to a published text.
  std::uint32_t published_blocks() const { return published_blocks_; }
  /// The index entries of the first blocks.
  std::span<const PrefixId> cached() const { return cached_; }

 private:
  void become(KvState to);
  std::uint32_t blocks_for(std::uint32_t n_positions) const {
    return (n_positions + tokens_per_block_ - 1) / tokens_per_block_;
  }
  void give_back(BlockPool& pool, PrefixIndex& index);
  void cache_state(const OwnedText& text, PrefixIndex& index);
  std::size_t take_again(std::vector<PrefixId> chain, BlockPool& pool, const PrefixIndex& index);
  void release_swapped(BlockPool& swap);
  bool next_is_full() const {
    return published_blocks_ == 0 && (cached_.size() + 1) * tokens_per_block_ <= committed_;
  }

  std::uint32_t tokens_per_block_;
  std::uint32_t committed_ = 0;
  std::uint32_t published_blocks_ = 0;
  KvState state_ = KvState::Allocated;
  bool is_duplicate_ = false;  // another sequence has cached the next block's text
  std::vector<BlockId> blocks_;
  std::vector<BlockId> record_blocks_;
  std::vector<BlockId> swapped_;
  std::vector<PrefixId> cached_;  // referenced
  WindowBlocks windows_;
  RecurrentState recurrent_;
};

/// The number of blocks in `table.moved()`.
inline std::uint32_t moved_blocks(const BlockTable& table) {
  return table.committed_blocks() +
         static_cast<std::uint32_t>(table.windows().moved(table.committed()).size() +
                                    table.recurrent().from().size());
}

}  // namespace leasehold
