#include "worker/kv/block_table.hpp"

#include <algorithm>
#include <iterator>

#include "common/expects.hpp"

namespace leasehold {

/// Changes the state; no other function assigns it.
void BlockTable::become(KvState to) {
  expects(may_become(state_, to), "KV blocks change their state as the table of states allows");
  state_ = to;
}

namespace {

/// The blocks of layers with a window of these entries, [entries, n_groups].
std::vector<BlockId> windows_of(std::span<const PrefixId> entries, const PrefixIndex& index) {
  std::vector<BlockId> windows;
  for (const PrefixId id : entries)
    std::ranges::copy(index.windows().of(id), std::back_inserter(windows));
  return windows;
}

}  // namespace

void BlockTable::start_with(std::vector<PrefixId> chain, const PrefixIndex& index,
                            std::uint32_t first_window) {
  expects(blocks_.empty(), "cached blocks are the first ones");
  cached_ = std::move(chain);
  for (const PrefixId id : cached_) blocks_.push_back(index.block(id));
  committed_ = static_cast<std::uint32_t>(blocks_.size()) * tokens_per_block_;
  if (windows_.exists())
    windows_.start(first_window, windows_of(std::span(cached_).subspan(first_window), index));
}

void BlockTable::continue_in(BlockId block, std::uint32_t positions,
                             std::span<const BlockId> window) {
  windows_.append(window);
  expects(blocks_.size() == cached_.size() && positions <= tokens_per_block_,
          "a block of the text follows the cached ones");
  blocks_.push_back(block);
  committed_ += positions;
}

void BlockTable::start_with_published(std::span<const PrefixId> chain, const PrefixIndex& published,
                                      std::uint32_t first_window) {
  expects(blocks_.empty(), "published blocks are the first ones");
  if (windows_.exists())
    windows_.start(first_window, windows_of(chain.subspan(first_window), published));
  for (const PrefixId id : chain) blocks_.push_back(published.block(id));
  published_blocks_ = static_cast<std::uint32_t>(blocks_.size());
  committed_ = published_blocks_ * tokens_per_block_;
}

Result<void> BlockTable::reserve(std::uint32_t n_positions, BlockPool& pool) {
  expects(!is_moved_out(state_) && state_ != KvState::Freed,
          "blocks are reserved while the sequence is in the KV pool");
  const std::uint32_t missing = missing_blocks(n_positions);
  if (missing == 0) return {};
  std::vector<BlockId> taken;
  TRY(pool.take(missing, taken));
  const std::uint32_t needed = blocks_for(n_positions);
  const auto held = static_cast<std::uint32_t>(blocks_.size());
  const auto rest = taken.begin() + (std::max(needed, held) - held);
  blocks_.insert(blocks_.end(), taken.begin(), rest);
  windows_.append({rest, taken.end()});
  return {};
}

std::uint32_t BlockTable::missing_blocks(std::uint32_t n_positions) const {
  const std::uint32_t needed = blocks_for(n_positions);
  const auto held = static_cast<std::uint32_t>(blocks_.size());
  return std::max(needed, held) - held + windows_.missing(windows_.shape().end(committed_, needed));
}

void BlockTable::trim(std::uint32_t n_positions, BlockPool& pool, PrefixIndex& index) {
  expects(n_positions >= committed_, "committed positions keep their blocks");
  while (blocks_.size() > blocks_for(n_positions)) {
    pool.release(blocks_.back());
    blocks_.pop_back();
  }
  windows_.trim(blocks_for(n_positions), pool);
  windows_.leave(windows_.shape().first(committed_), EntryBlocks::Turn::Early, cached_,
                 published_blocks_, pool, index.windows());
}

Result<void> BlockTable::reserve_record(std::uint32_t count, BlockPool& pool) {
  expects(record_blocks_.empty(), "a sequence has one record");
  return pool.take(count, record_blocks_);
}

void BlockTable::commit(std::uint32_t n_positions) {
  expects(n_positions >= committed_ && n_positions <= blocks_.size() * tokens_per_block_ &&
              (!windows_.exists() || blocks_for(n_positions) <= windows_.end()),
          "committed positions have blocks and only grow");
  if (state_ != KvState::Active) become(KvState::Active);
  if (n_positions > committed_) recurrent_.commit();
  committed_ = n_positions;
}

namespace {

PrefixId last_of(std::span<const PrefixId> chain) {
  return chain.empty() ? PrefixId{} : chain.back();
}

/// The text of the block after the first `n_blocks`.
OwnedText block_text(const OwnedText& text, std::size_t n_blocks, std::uint32_t tokens_per_block) {
  return text.part(n_blocks * tokens_per_block, tokens_per_block);
}

}  // namespace

void BlockTable::cache_full(const OwnedText& text, PrefixIndex& index) {
  while (!is_duplicate_ && next_is_full()) {
    const auto added =
        index.add(last_of(cached_), block_text(text, cached_.size(), tokens_per_block_),
                  blocks_[cached_.size()]);
    is_duplicate_ = !added;
    if (!added) return;
    cached_.push_back(*added);
    windows_.cache(cached_, index.windows());
  }
}

void BlockTable::cache_all(const OwnedText& text, PrefixIndex& index) {
  while (next_is_full()) {
    const auto entry =
        index.add_or_take(last_of(cached_), block_text(text, cached_.size(), tokens_per_block_),
                          blocks_[cached_.size()]);
    if (!entry) return;
    cached_.push_back(*entry);
    windows_.cache(cached_, index.windows());
  }
  if (!recurrent_.from().empty()) cache_state(text, index);
}

/// Gives the valid copy to the entry of the last committed position, unless that has one.
void BlockTable::cache_state(const OwnedText& text, PrefixIndex& index) {
  const auto full = static_cast<std::uint32_t>(cached_.size());
  const std::uint32_t rest = committed_ - full * tokens_per_block_;
  if (rest > 0) {
    const auto entry =
        index.add_or_take(last_of(cached_), text.part(committed_ - rest, rest), blocks_[full]);
    if (!entry) return;
    cached_.push_back(*entry);
    index.mark_end(*entry);
  }
  if (!index.states().has(last_of(cached_)))
    index.states().set(last_of(cached_), recurrent_.take_valid());
}

std::vector<BlockId> BlockTable::moved() const {
  const std::span<const BlockId> positions = blocks().first(committed_blocks());
  std::vector<BlockId> moved(positions.begin(), positions.end());
  std::ranges::copy(windows_.moved(committed_), std::back_inserter(moved));
  moved.insert(moved.end(), recurrent_.from().begin(), recurrent_.from().end());
  return moved;
}

void BlockTable::free(BlockPool& pool, PrefixIndex& index) {
  expects(!is_moved_out(state_), "a swapped table has no blocks in the KV pool");
  become(KvState::Freed);
  give_back(pool, index);
}

void BlockTable::give_back(BlockPool& pool, PrefixIndex& index) {
  for (std::size_t i = published_blocks_; i < blocks_.size(); ++i) {
    const bool stays = i < cached_.size() && index.block(cached_[i]) == blocks_[i];
    if (!stays) pool.release(blocks_[i]);
  }
  windows_.leave(windows_.end(), EntryBlocks::Turn::Usual, cached_, published_blocks_, pool,
                 index.windows());
  pool.release_record(record_blocks_);
  recurrent_.release(pool);
  index.release(cached_);
  published_blocks_ = 0;
  cached_.clear();
  blocks_.clear();
  record_blocks_.clear();
}

// ----------------------------------------------------------------------------------------- move

std::pair<BlockTable, std::vector<BlockCopy>> BlockTable::copy_to(BlockPool& pool) const {
  expects(state_ == KvState::Allocated || state_ == KvState::Active,
          "blocks are copied from where all of them are");
  BlockTable copy(tokens_per_block_, recurrent_.copy_blocks(), windows_.shape());
  copy.state_ = state_;
  copy.committed_ = committed_;
  copy.published_blocks_ = published_blocks_;
  copy.blocks_.assign(blocks_.begin(), blocks_.begin() + published_blocks_);
  const auto own = static_cast<std::uint32_t>(blocks_.size()) - published_blocks_;
  const bool ok = pool.take(own, copy.blocks_) &&
                  pool.take(static_cast<std::uint32_t>(record_blocks_.size()), copy.record_blocks_);
  expects(ok, "a copy has a free block for each block");
  copy.windows_ = windows_.copy(published_blocks_, pool);
  if (!recurrent_.blocks().empty()) copy.recurrent_.take_filled(pool, committed_ > 0);
  const std::vector<BlockId> from = moved();
  const std::vector<BlockId> to = copy.moved();
  std::vector<BlockCopy> copies;
  for (std::size_t i = 0; i < from.size(); ++i)
    if (from[i] != to[i]) copies.push_back({.from = from[i], .to = to[i]});  // not published
  return {std::move(copy), std::move(copies)};
}

// ----------------------------------------------------------------------------------------- swap

std::vector<BlockCopy> BlockTable::swap_out(BlockPool& pool, BlockPool& swap, PrefixIndex& index) {
  expects(published_blocks_ == 0, "published blocks are not copied");
  const std::vector<BlockId> from = moved();
  expects(swap.free_blocks() >= from.size(), "a swap-out has a swap block for each block");
  become(KvState::Swapped);
  std::vector<BlockCopy> copies;
  for (const BlockId block : from) {
    swapped_.push_back(*swap.take());
    copies.push_back({.from = block, .to = swapped_.back()});
  }
  give_back(pool, index);
  return copies;
}

/// Starts the table with the blocks of a chain, and takes the other blocks of its positions and of
/// its state. Returns the number of blocks that hold their content.
std::size_t BlockTable::take_again(std::vector<PrefixId> chain, BlockPool& pool,
                                   const PrefixIndex& index) {
  const std::uint32_t committed = committed_;
  start_with(std::move(chain), index);
  const std::size_t cached = blocks_.size();
  committed_ = std::max(committed_, committed);
  is_duplicate_ = false;  // the chain is again the longest cached one
  const bool ok =
      pool.take(committed_blocks() - static_cast<std::uint32_t>(cached), blocks_).has_value();
  expects(ok, "a returning table has a KV block for each of its blocks");
  windows_.start(windows_.shape().first(committed_), {});
  windows_.take_filled(committed_blocks(), pool);
  if (recurrent_.exists()) recurrent_.take_filled(pool, committed_ > 0);
  return cached;
}

std::vector<BlockCopy> BlockTable::swap_in(std::vector<PrefixId> chain, BlockPool& pool,
                                           BlockPool& swap, const PrefixIndex& index) {
  become(KvState::Active);
  const std::size_t cached = take_again(std::move(chain), pool, index);
  const std::vector<BlockId> to = moved();
  std::vector<BlockCopy> copies;
  for (std::size_t i = cached; i < swapped_.size(); ++i)
    copies.push_back({.from = swapped_[i], .to = to[i]});
  release_swapped(swap);
  return copies;
}

void BlockTable::free_swapped(BlockPool& swap) {
  expects(is_moved_out(state_), "only such a table has swap blocks");
  become(KvState::Freed);
  release_swapped(swap);
}

void BlockTable::release_swapped(BlockPool& swap) {
  for (const BlockId block : swapped_) swap.release(block);
  swapped_.clear();
}

// ---------------------------------------------------------------------------------------- spill

void BlockTable::spill(BlockPool& swap) {
  become(KvState::Spilled);
  release_swapped(swap);
}

void BlockTable::begin_return(std::vector<PrefixId> chain, BlockPool& pool,
                              const PrefixIndex& index) {
  become(KvState::Returning);
  take_again(std::move(chain), pool, index);
}

void BlockTable::finish_return(bool is_filled) {
  become(KvState::Active);
  if (is_filled) return;
  committed_ = static_cast<std::uint32_t>(cached_.size()) * tokens_per_block_;
  expects(committed_ == 0 || !(recurrent_.exists() || windows_.exists()),
          "a state and a window are computed again from position 0");
  windows_.restart();
  recurrent_.reset();
}

}  // namespace leasehold
