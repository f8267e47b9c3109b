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

/// True if the index owns the blocks of block `index` of the positions.
bool WindowBlocks::is_cached(std::uint32_t index, std::span<const PrefixId> cached,
                             const EntryBlocks& owned) const {
  return index < cached.size() && !of(index).empty() &&
         std::ranges::equal(owned.of(cached[index]), of(index));
}

void WindowBlocks::leave(std::uint32_t end, EntryBlocks::Turn turn,
                         std::span<const PrefixId> cached, std::uint32_t borrowed, BlockPool& pool,
                         EntryBlocks& index) {
  for (std::uint32_t i = std::max(first_, borrowed); i < end; ++i) {
    if (is_cached(i, cached, index)) {
      index.release(cached[i], turn);
      continue;
    }
    for (const BlockId block : of(i)) pool.release(block);
  }
  const auto count = static_cast<std::ptrdiff_t>(between(first_, end).size());
  blocks_.erase(blocks_.begin(), blocks_.begin() + count);
  first_ = std::max(first_, end);
}

void WindowBlocks::cache(std::span<const PrefixId> cached, EntryBlocks& index) const {
  const std::span<const BlockId> own = of(static_cast<std::uint32_t>(cached.size()) - 1);
  if (own.empty() || index.has(cached.back())) return;
  index.set(cached.back(), {own.begin(), own.end()});
  index.reference(cached.last(1));
}

std::uint32_t WindowBlocks::shared(std::span<const PrefixId> cached,
                                   const EntryBlocks& index) const {
  std::uint32_t shared = 0;
  for (std::uint32_t i = first_; i < end(); ++i)
    if (is_cached(i, cached, index) && index.references(cached[i]) > 1)
      shared += shape_.window.n_groups;
  return shared;
}

std::span<const BlockId> WindowBlocks::between(std::uint32_t from, std::uint32_t to) const {
  const std::uint32_t begin = std::clamp(from, first_, std::max(first_, end()));
  const std::uint32_t stop = std::clamp(to, begin, std::max(first_, end()));
  return std::span(blocks_).subspan(std::size_t{begin - first_} * shape_.window.n_groups,
                                    std::size_t{stop - begin} * shape_.window.n_groups);
}

std::size_t length_with_windows(std::span<const PrefixId> chain, const EntryBlocks& owned,
                                const KvWindow& window) {
  std::size_t length = chain.size();
  if (window.n_groups == 0) return length;
  while (length > 0) {
    const auto position = static_cast<std::uint32_t>(length) * KvLayout::kBlockTokens;
    std::size_t from = length;
    while (from > window.first_block(position) && owned.has(chain[from - 1])) --from;
    if (from == window.first_block(position)) break;
    length = from - 1;
  }
  return length;
}

}  // namespace leasehold
