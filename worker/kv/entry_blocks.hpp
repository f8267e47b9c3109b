/// Blocks that entries of a prefix index own besides their own block: the recurrent state after the
/// last token of an entry, or the keys and values of layers with a window (KvLayout).
///
/// Sequences may reference the blocks of an entry. The others are *unused* and can be evicted, the
/// least recently used first.
///
/// Pure bookkeeping of blocks. Threads: one at a time.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "worker/kv/block_pool.hpp"

namespace leasehold {

/// The id of an entry, which is not reused. 0 is the start of a text, before any entry.
using PrefixId = StrongId<struct PrefixTag>;

class EntryBlocks {
 public:
  /// The order in which unused blocks are evicted: `Early` ones leave before all others.
  enum class Turn : std::uint8_t { Early, Usual };

  /// Gives blocks to an entry without any. Nothing references them.
  void set(PrefixId id, std::vector<BlockId> blocks);
  /// References the blocks of these entries. Precondition: all of them have blocks.
  void reference(std::span<const PrefixId> ids);
  /// Releases a reference to the blocks of an entry.
  void release(PrefixId id, Turn turn = Turn::Usual);

  /// Takes the blocks of an entry, which then belong to the caller. Returns none if the entry has
  /// none. Precondition: they are unused.
  std::vector<BlockId> take(PrefixId id);
  /// Takes the unused blocks that leave first, all of one entry. Returns none if no block is
  /// unused.
  std::vector<BlockId> take_oldest();
  /// Takes the oldest blocks while more than `most` are unused.
  std::vector<BlockId> limit(std::uint32_t most);
  /// Takes all unused blocks of the entries with an unused block in the extent.
  std::vector<BlockId> take_in(ExtentId extent);

  bool has(PrefixId id) const { return entries_.contains(id); }
  /// The blocks of an entry; empty if it has none.
  std::span<const BlockId> of(PrefixId id) const;
  std::uint32_t references(PrefixId id) const { return entries_.at(id).references; }
  /// Adds the unused blocks to the counts.
  void count_by_extent(std::map<ExtentId, std::uint32_t>& counts) const;
  /// True if some unused blocks leave before all others.
  bool has_early() const { return !by_age_.empty() && by_age_.begin()->first.first == Turn::Early; }
  /// The number of unused blocks.
  std::uint32_t unused() const { return unused_; }
  /// The number of unused blocks of these entries, which all have blocks.
  std::uint32_t unused_of(std::span<const PrefixId> ids) const;

 private:
  using Age = std::pair<Turn, std::uint64_t>;
  struct Entry {
    std::vector<BlockId> blocks;
    std::uint32_t references = 0;
    Age age;  // key in by_age_ while unused
  };
  void become_unused(PrefixId id, Entry& entry, Turn turn);
  void become_used(const Entry& entry);

  std::map<PrefixId, Entry> entries_;
  std::map<Age, PrefixId> by_age_;  // of unused blocks
  std::uint32_t unused_ = 0;
  std::uint64_t last_age_ = 0;
};

}  // namespace leasehold
