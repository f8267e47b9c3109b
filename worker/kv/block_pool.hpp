/// The KV blocks of one lease: records which exist and which are free.
///
/// Pure bookkeeping: it never touches memory. A block never straddles extents. Blocks are taken
/// from the fullest extent first, so that whole extents become free again soonest.
///
/// Invariant: free + held = blocks of all extents. Threads: one at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/ids.hpp"
#include "common/result.hpp"

namespace leasehold {

/// A block of an extent; the extent determines whose memory it is.
struct BlockId {
  ExtentId extent;
  std::uint32_t index = 0;
  auto operator<=>(const BlockId&) const = default;
};

class BlockPool {
 public:
  /// Adds an extent of `blocks` free blocks. Precondition: it is not in the pool yet.
  void add_extent(ExtentId extent, std::uint32_t blocks);

  /// Returns nothing when every block is held.
  std::optional<BlockId> take();

  /// Takes `count` blocks and appends them to `into`, all or none. Errors: OutOfBlocks, with the
  /// number of missing blocks.
  Result<void> take(std::uint32_t count, std::vector<BlockId>& into);

  /// Takes this block. Returns false if it is held or not in this pool.
  bool take(BlockId block);

  /// Precondition: the block is held from this pool.
  void release(BlockId block);

  /// Releases the blocks of a sequence record, and lists its first block for
  /// `take_released_records`, because the outdated record there must be cleared. Precondition: the
  /// blocks are held from this pool.
  void release_record(std::span<const BlockId> blocks);
  /// The first blocks of the records that were released since the last call.
  std::vector<BlockId> take_released_records() { return std::exchange(released_records_, {}); }
  bool has_released_records() const { return !released_records_.empty(); }

  bool holds(BlockId block) const;
  /// True if the block belongs to this pool, held or free.
  bool contains(BlockId block) const;

  /// Removes up to `count` extents without a held block and returns their ids.
  std::vector<ExtentId> remove_free_extents(std::uint32_t count);

  /// The held blocks of every extent.
  std::map<ExtentId, std::uint32_t> held_by_extent() const;
  std::uint32_t free_blocks() const;
  std::uint32_t held_blocks() const;
  std::uint32_t total_blocks() const;

 private:
  struct Extent {
    ExtentId id;
    std::vector<std::uint32_t> free;  // indices, taken from the back
    std::vector<bool> held;           // by index
  };
  Extent* find(ExtentId id);

  std::vector<Extent> extents_;
  std::vector<BlockId> released_records_;
};

}  // namespace leasehold
