/// The blocks of one sequence in the groups of layers with a window (KvLayout): for each block of
/// positions from `first` to `end` a block of every such group. Earlier positions have none,
/// because no row after the last full block reads them.
///
/// Pure bookkeeping: it never touches memory. A model without such groups has no blocks here.
/// Threads: one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/kv_layout.hpp"
#include "worker/kv/entry_blocks.hpp"

namespace leasehold {

/// What the groups with a window need of a sequence.
struct WindowShape {
  KvWindow window;
  std::uint32_t step_rows = 0;  ///< The most rows of the sequence in a step.

  bool exists() const { return window.n_groups > 0; }
  /// The first block of positions that a sequence keeps: what the row after its last full block
  /// reads, so that another text can start there.
  std::uint32_t first(std::uint32_t committed) const {
    return window.first_block(committed / KvLayout::kBlockTokens * KvLayout::kBlockTokens);
  }
  /// The end of the blocks that a sequence with `committed` computed positions reserves for
  /// `n_blocks` blocks of positions.
  std::uint32_t end(std::uint32_t committed, std::uint32_t n_blocks) const {
    return std::min(n_blocks,
                    committed / KvLayout::kBlockTokens + KvWindow::blocks_ahead(step_rows));
  }
  /// Blocks that a text of `n_blocks` blocks of positions holds at most.
  std::uint32_t most_blocks(std::uint32_t n_blocks) const {
    return window.n_groups * std::min(n_blocks, window.most_blocks(step_rows));
  }
};

class WindowBlocks {
 public:
  explicit WindowBlocks(const WindowShape& shape) : shape_(shape) {}

  const WindowShape& shape() const { return shape_; }
  bool exists() const { return shape_.exists(); }

  /// Sets the blocks of the positions from block `first` on, [blocks of positions, n_groups].
  /// Precondition: the sequence has no blocks of these groups.
  void start(std::uint32_t first, std::vector<BlockId> blocks);
  /// Appends the blocks of the next blocks of positions, [n_groups] each.
  void append(std::span<const BlockId> blocks);
  /// Takes the missing blocks up to `end`. Precondition: the pool has them.
  void take_filled(std::uint32_t end, BlockPool& pool);
  /// Another object for the same positions: the blocks before `shared` are the same, and the others
  /// are taken from `pool`. Precondition: the pool has them.
  WindowBlocks copy(std::uint32_t shared, BlockPool& pool) const;
  /// The blocks that are missing up to `end`.
  std::uint32_t missing(std::uint32_t end) const {
    return shape_.window.n_groups * (std::max(end, this->end()) - this->end());
  }
  /// Releases the blocks from `end` on.
  void trim(std::uint32_t end, BlockPool& pool);
  /// Gives up the blocks before block `end` of the positions: those that the index owns lose this
  /// reference, and the others return to the pool. `cached` are the index entries of the first
  /// blocks of positions. Blocks before `borrowed` belong to another lease.
  void leave(std::uint32_t end, EntryBlocks::Turn turn, std::span<const PrefixId> cached,
             std::uint32_t borrowed, BlockPool& pool, EntryBlocks& index);
  /// Gives the blocks of the last cached block of positions to its entry, with a reference, unless
  /// that has some or there are none.
  void cache(std::span<const PrefixId> cached, EntryBlocks& index) const;
  /// The number of blocks that other sequences use too.
  std::uint32_t shared(std::span<const PrefixId> cached, const EntryBlocks& index) const;
  /// Uses the blocks for the first positions instead; their content is lost.
  void restart() { first_ = 0; }

  std::uint32_t first() const { return first_; }
  std::uint32_t end() const {
    return exists() ? first_ + static_cast<std::uint32_t>(blocks_.size()) / shape_.window.n_groups
                    : 0;
  }
  /// The blocks of block `index` of the positions, [n_groups]; empty if there are none.
  std::span<const BlockId> of(std::uint32_t index) const { return between(index, index + 1); }
  /// The blocks that the row after the last full block of `committed` positions reads.
  std::span<const BlockId> moved(std::uint32_t committed) const {
    return between(shape_.first(committed),
                   (committed + KvLayout::kBlockTokens - 1) / KvLayout::kBlockTokens);
  }
  /// The blocks from `from` to `to`, [blocks of positions, n_groups].
  std::span<const BlockId> between(std::uint32_t from, std::uint32_t to) const;

 private:
  bool is_cached(std::uint32_t index, std::span<const PrefixId> cached,
                 const EntryBlocks& owned) const;

  WindowShape shape_;
  std::uint32_t first_ = 0;
  std::vector<BlockId> blocks_;  // [end - first, n_groups]
};

/// The length of the longest part of the chain, from its start, after which a sequence can start:
/// the entries own all blocks that its next row reads.
std::size_t length_with_windows(std::span<const PrefixId> chain, const EntryBlocks& owned,
                                const KvWindow& window);

}  // namespace leasehold
