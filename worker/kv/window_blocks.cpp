#include "worker/kv/window_blocks.hpp"

#include <utility>

#include "common/expects.hpp"

namespace leasehold {

void WindowBlocks::start(std::uint32_t first, std::vector<BlockId> blocks) {
  expects(blocks_.empty(), "the first blocks of a window come first");
  if (!exists()) return;
  first_ = first;
  blocks_ = std::move(blocks);
}

void WindowBlocks::append(std::span<const BlockId> blocks) {
  expects(blocks.empty() || (exists() && blocks.size() % shape_.window.n_groups == 0),
          "each group has a block");
  blocks_.insert(blocks_.end(), blocks.begin(), blocks.end());
}

void WindowBlocks::take_filled(std::uint32_t end, BlockPool& pool) {
  const bool ok = pool.take(missing(end), blocks_).has_value();
  expects(ok, "blocks that are filled are free");
}

WindowBlocks WindowBlocks::copy(std::uint32_t shared, BlockPool& pool) const {
  WindowBlocks copy(shape_);
  const std::span<const BlockId> same = between(first_, shared);
  copy.start(first_, {same.begin(), same.end()});
  copy.take_filled(end(), pool);
  return copy;
}

void WindowBlocks::trim(std::uint32_t end, BlockPool& pool) {
  for (const BlockId block : between(end, this->end())) pool.release(block);
  blocks_.resize(between(first_, end).size());
}

void WindowBlocks::forget_before(std::uint32_t first) {
  const auto count = static_cast<std::ptrdiff_t>(between(first_, first).size());
  blocks_.erase(blocks_.begin(), blocks_.begin() + count);
  first_ = std::max(first_, first);
}

std::span<const BlockId> WindowBlocks::between(std::uint32_t from, std::uint32_t to) const {
  const std::uint32_t begin = std::clamp(from, first_, std::max(first_, end()));
  const std::uint32_t stop = std::clamp(to, begin, std::max(first_, end()));
  return std::span(blocks_).subspan(std::size_t{begin - first_} * shape_.window.n_groups,
                                    std::size_t{stop - begin} * shape_.window.n_groups);
}

}  // namespace leasehold
