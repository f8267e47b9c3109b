#include "worker/kv/block_table.hpp"

#include <fmt/format.h>

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

Result<void> BlockTable::reserve(std::uint32_t n_positions, BlockPool& pool) {
  expects(!is_freed_, "no block is reserved in a freed block table");
  const std::uint32_t needed = (n_positions + tokens_per_block_ - 1) / tokens_per_block_;
  const auto held = static_cast<std::uint32_t>(blocks_.size());
  if (needed <= held) return {};
  return take_blocks(needed - held, pool, blocks_);
}

Result<void> BlockTable::reserve_record(std::uint32_t count, BlockPool& pool) {
  expects(record_blocks_.empty(), "a sequence has one record");
  return take_blocks(count, pool, record_blocks_);
}

void BlockTable::commit(std::uint32_t n_positions) {
  expects(n_positions >= committed_ && n_positions <= blocks_.size() * tokens_per_block_,
          "committed positions have blocks and only grow");
  committed_ = n_positions;
}

void BlockTable::free(BlockPool& pool) {
  for (const BlockId block : blocks_) pool.release(block);
  for (const BlockId block : record_blocks_) pool.release(block);
  blocks_.clear();
  record_blocks_.clear();
  is_freed_ = true;
}

}  // namespace leasehold
