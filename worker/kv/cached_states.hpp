/// The recurrent states that entries of a prefix index own, each a copy after the last token of its
/// entry. The least recently set state is the oldest.
///
/// Pure bookkeeping of blocks. Threads: one at a time.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "worker/kv/block_pool.hpp"

namespace leasehold {

using PrefixId = StrongId<struct PrefixTag>;  ///< An entry; never reused. 0: before the first one.

class CachedStates {
 public:
  /// Gives the blocks of a state to an entry without one.
  void set(PrefixId id, std::vector<BlockId> blocks);
  /// Takes the blocks of an entry's state, which then belong to the caller; empty without a state.
  std::vector<BlockId> take(PrefixId id);
  /// Takes the blocks of the oldest state; empty without any.
  std::vector<BlockId> take_oldest();
  /// Takes the oldest states while all have more than `most` blocks. Returns their blocks.
  std::vector<BlockId> limit(std::uint32_t most);
  /// Takes the states with a block in the extent. Returns all their blocks.
  std::vector<BlockId> take_in(ExtentId extent);

  bool has(PrefixId id) const { return states_.contains(id); }
  /// The blocks of an entry's state; empty without a state.
  std::span<const BlockId> of(PrefixId id) const;
  /// Adds the blocks of all states to the counts.
  void count_by_extent(std::map<ExtentId, std::uint32_t>& counts) const;
  /// The number of blocks of all states.
  std::uint32_t blocks() const { return blocks_; }

 private:
  struct State {
    std::vector<BlockId> blocks;
    std::uint64_t age = 0;  // key in by_age_
  };
  std::map<PrefixId, State> states_;
  std::map<std::uint64_t, PrefixId> by_age_;
  std::uint32_t blocks_ = 0;
  std::uint64_t last_age_ = 0;
};

}  // namespace leasehold
