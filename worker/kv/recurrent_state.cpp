#include "worker/kv/recurrent_state.hpp"

#include <utility>

#include "common/expects.hpp"

namespace leasehold {

Result<void> RecurrentState::reserve(BlockPool& pool) {
  expects(blocks_.empty(), "the blocks of a state are reserved once");
  TRY(pool.take(total_blocks(), blocks_));
  reset();
  return {};
}

Result<void> RecurrentState::start_with(std::span<const BlockId> valid, BlockPool& pool) {
  expects(blocks_.empty() && valid.size() == blocks_per_copy_, "a state starts with one copy");
  std::vector<BlockId> blocks(valid.begin(), valid.end());
  TRY(pool.take(blocks_per_copy_, blocks));
  blocks_ = std::move(blocks);
  valid_ = 0;
  return {};
}

std::vector<BlockId> RecurrentState::take_valid() {
  std::vector<BlockId> valid(from().begin(), from().end());
  expects(!valid.empty(), "a copy that is taken is valid");
  std::vector<BlockId> rest(to().begin(), to().end());
  blocks_ = std::move(rest);
  reset();
  return valid;
}

void RecurrentState::take_filled(BlockPool& pool, bool is_valid) {
  const bool ok = reserve(pool).has_value();
  expects(ok, "a state that is filled has its free blocks");
  if (is_valid) valid_ = 0;
}

void RecurrentState::release(BlockPool& pool) {
  for (const BlockId block : blocks_) pool.release(block);
  blocks_.clear();
  reset();
}

void RecurrentState::commit() {
  if (!exists()) return;
  expects(!blocks_.empty(), "a step writes a state that has its blocks");
  valid_ = valid_after(1);
}

}  // namespace leasehold
