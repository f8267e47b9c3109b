#include "worker/kv/block_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/expects.hpp"

namespace leasehold {
namespace {

Result<void> take_blocks(std::uint32_t count, BlockPool& pool, std::vector<BlockId>& into) {
  if (pool.free_blocks() < count) {
    return fail(Errc::OutOfBlocks,
                fmt::format("{} more KV blocks are needed, and {} of {} are free", count,
                            pool.free_blocks(), pool.total_blocks()));
  }
  for (std::uint32_t i = 0; i < count; ++i) into.push_back(*pool.take());
  return {};
}

}  // namespace

/// Changes the state; no other function assigns it.
void BlockTable::become(KvState to) {
  expects(may_become(state_, to), "KV blocks change their state as the table of states allows");
  state_ = to;
}

void BlockTable::start_with(std::vector<PrefixId> chain, const PrefixIndex& index) {
  expects(blocks_.empty(), "cached blocks are the first ones");
  cached_ = std::move(chain);
  for (const PrefixId id : cached_) blocks_.push_back(index.block(id));
  committed_ = static_cast<std::uint32_t>(blocks_.size()) * tokens_per_block_;
}

void BlockTable::continue_in(BlockId block, std::uint32_t positions) {
  expects(blocks_.size() == cached_.size() && positions <= tokens_per_block_,
          "a block of the text follows the cached ones");
  blocks_.push_back(block);
  committed_ += positions;
}

void BlockTable::start_with_published(std::span<const PrefixId> chain,
                                      const PrefixIndex& published) {
  expects(blocks_.empty(), "published blocks are the first ones");
  for (const PrefixId id : chain) blocks_.push_back(published.block(id));
  published_blocks_ = static_cast<std::uint32_t>(blocks_.size());
  committed_ = published_blocks_ * tokens_per_block_;
}

Result<void> BlockTable::reserve(std::uint32_t n_positions, BlockPool& pool) {
  expects(!is_moved_out(state_) && state_ != KvState::Freed,
          "blocks are reserved while the sequence is in the KV pool");
  const std::uint32_t needed = blocks_for(n_positions);
  const auto held = static_cast<std::uint32_t>(blocks_.size());
  if (needed <= held) return {};
  return take_blocks(needed - held, pool, blocks_);
}

void BlockTable::trim(std::uint32_t n_positions, BlockPool& pool) {
  expects(n_positions >= committed_, "committed positions keep their blocks");
  while (blocks_.size() > blocks_for(n_positions)) {
    pool.release(blocks_.back());
    blocks_.pop_back();
  }
}

Result<void> BlockTable::reserve_record(std::uint32_t count, BlockPool& pool) {
  expects(record_blocks_.empty(), "a sequence has one record");
  return take_blocks(count, pool, record_blocks_);
}

void BlockTable::commit(std::uint32_t n_positions) {
  expects(n_positions >= committed_ && n_positions <= blocks_.size() * tokens_per_block_,
          "committed positions have blocks and only grow");
  if (state_ != KvState::Active) become(KvState::Active);
  committed_ = n_positions;
}

OwnedText BlockTable::next_text(const OwnedText& text) const {
  return {text.owner, text.tokens.subspan(cached_.size() * tokens_per_block_, tokens_per_block_)};
}

void BlockTable::cache_full(const OwnedText& text, PrefixIndex& index) {
  while (!is_duplicate_ && next_is_full()) {
    const auto added = index.add(last_cached(), next_text(text), blocks_[cached_.size()]);
    is_duplicate_ = !added;
    if (added) cached_.push_back(*added);
  }
}

void BlockTable::cache_all(const OwnedText& text, PrefixIndex& index) {
  while (next_is_full()) {
    const auto entry = index.add_or_take(last_cached(), next_text(text), blocks_[cached_.size()]);
    if (!entry) return;
    cached_.push_back(*entry);
  }
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
  pool.release_record(record_blocks_);
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
  BlockTable copy(tokens_per_block_);
  copy.state_ = state_;
  copy.committed_ = committed_;
  copy.published_blocks_ = published_blocks_;
  copy.blocks_.assign(blocks_.begin(), blocks_.begin() + published_blocks_);
  const auto own = static_cast<std::uint32_t>(blocks_.size()) - published_blocks_;
  const bool ok =
      take_blocks(own, pool, copy.blocks_) &&
      take_blocks(static_cast<std::uint32_t>(record_blocks_.size()), pool, copy.record_blocks_);
  expects(ok, "a copy has a free block for each block");
  std::vector<BlockCopy> copies;
  for (std::uint32_t i = published_blocks_; i < committed_blocks(); ++i)
    copies.push_back({.from = blocks_[i], .to = copy.blocks_[i]});
  return {std::move(copy), std::move(copies)};
}

// ----------------------------------------------------------------------------------------- swap

std::vector<BlockCopy> BlockTable::swap_out(BlockPool& pool, BlockPool& swap, PrefixIndex& index) {
  expects(published_blocks_ == 0, "published blocks are not copied");
  expects(swap.free_blocks() >= committed_blocks(), "a swap-out has a swap block for each block");
  become(KvState::Swapped);
  std::vector<BlockCopy> copies;
  for (std::uint32_t i = 0; i < committed_blocks(); ++i) {
    swapped_.push_back(*swap.take());
    copies.push_back({.from = blocks_[i], .to = swapped_[i]});
  }
  give_back(pool, index);
  return copies;
}

std::vector<BlockCopy> BlockTable::swap_in(std::vector<PrefixId> chain, BlockPool& pool,
                                           BlockPool& swap, const PrefixIndex& index) {
  become(KvState::Active);
  const std::uint32_t committed = committed_;
  start_with(std::move(chain), index);
  committed_ = std::max(committed_, committed);
  is_duplicate_ = false;  // the chain is again the longest cached one
  std::vector<BlockCopy> copies;
  for (std::size_t i = blocks_.size(); i < swapped_.size(); ++i) {
    const auto taken = pool.take();
    expects(taken.has_value(), "a swap-in has a KV block for each swapped block");
    blocks_.push_back(*taken);
    copies.push_back({.from = swapped_[i], .to = *taken});
  }
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
  const std::uint32_t committed = committed_;
  start_with(std::move(chain), index);
  committed_ = std::max(committed_, committed);
  is_duplicate_ = false;  // the chain is again the longest cached one
  while (blocks_.size() < committed_blocks()) {
    const auto taken = pool.take();
    expects(taken.has_value(), "a return has a KV block for each spilled block");
    blocks_.push_back(*taken);
  }
}

void BlockTable::finish_return(bool is_filled) {
  become(KvState::Active);
  if (!is_filled) committed_ = static_cast<std::uint32_t>(cached_.size()) * tokens_per_block_;
}

}  // namespace leasehold
