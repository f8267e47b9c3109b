#include "worker/kv/adopted_records.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/expects.hpp"

namespace leasehold {
namespace {

std::unexpected<Error> wrong(const SequenceRecord& record, std::string_view what) {
  return fail(Errc::FileCorrupt,
              fmt::format("the record of request {} {}", record.engine_request_id.value, what));
}

}  // namespace

Result<void> AdoptedRecords::check_tokens(const SequenceRecord& record) const {
  const auto is_unknown = [this](TokenId token) {
    return token < 0 || static_cast<std::uint32_t>(token) >= model_.n_vocab;
  };
  if (std::ranges::none_of(record.tokens, is_unknown)) return {};
  return wrong(record, "has a token outside the vocabulary");
}

/// The blocks of a record that hold its text.
std::vector<AdoptedRecords::Part> AdoptedRecords::parts_of(const SequenceRecord& record) const {
  std::vector<Part> parts;
  const auto count = static_cast<std::uint32_t>(record.blocks.size());
  for (std::uint32_t i = 0; i < count; ++i) parts.push_back({record.blocks[i], i, 0});
  if (model_.window.n_groups == 0) return parts;
  for (std::uint32_t i = first_window(record); i < count; ++i)
    for (std::uint32_t group = 1; const BlockId block : window_of(record, i))
      parts.push_back({block, i, group++});
  return parts;
}

/// The blocks of layers with a window for block `block` of the record's positions.
std::span<const BlockId> AdoptedRecords::window_of(const SequenceRecord& record,
                                                   std::uint32_t block) const {
  return std::span(record.windows)
      .subspan(std::size_t{block} * model_.window.n_groups, model_.window.n_groups);
}

/// True unless an earlier record lists the block for another text, adapter or group of layers.
bool AdoptedRecords::is_same_text(const SequenceRecord& record, const Part& part) const {
  const auto used = uses_.find(part.block);
  if (used == uses_.end()) return true;
  const std::size_t tokens = std::size_t{part.index + 1} * model_.tokens_per_block;
  const SequenceRecord& user = records_[used->second.record];
  const std::vector<TokenId>& other = user.tokens;
  return user.adapter == record.adapter && used->second.index == part.index &&
         used->second.group == part.group && tokens <= other.size() &&
         tokens <= record.tokens.size() &&
         std::equal(other.begin(), other.begin() + static_cast<std::ptrdiff_t>(tokens),
                    record.tokens.begin());
}

Result<void> AdoptedRecords::check_windows(const SequenceRecord& record) const {
  if (record.windows.size() == record.blocks.size() * model_.window.n_groups) return {};
  return wrong(record,
               "has no blocks of layers with a window that certainly hold its last positions; its "
               "text is computed again");
}

Result<void> AdoptedRecords::check_state(const SequenceRecord& record) const {
  if (record.state.size() == model_.state_blocks) return {};
  return wrong(record, record.state.empty()
                           ? "has no state that is certainly that of its last position; its text "
                             "is computed again"
                           : "has a state of another size");
}

Result<void> AdoptedRecords::check_blocks(const SequenceRecord& record,
                                          std::span<const BlockId> own_blocks,
                                          const BlockPool& pool) const {
  std::set<BlockId> named;
  const auto is_unused = [this](BlockId block) {
    return !unshared_.contains(block) && !uses_.contains(block);
  };
  for (const BlockId own : own_blocks) {
    if (!pool.contains(own)) return wrong(record, "lies outside the lease");
    if (!is_unused(own) || !named.insert(own).second) return wrong(record, "shares its own blocks");
  }
  for (const Part& part : parts_of(record)) {
    if (!pool.contains(part.block))
      return wrong(record,
                   "names a block outside the lease, as that of a reader of a published text does");
    if (!named.insert(part.block).second) return wrong(record, "names a block twice");
    if (unshared_.contains(part.block) || !is_same_text(record, part))
      return wrong(record, "names a block that another record uses");
  }
  for (const BlockId block : record.state) {
    const bool is_free = pool.contains(block) && is_unused(block);
    if (!is_free || !named.insert(block).second)
      return wrong(record, "names a block of its state outside the lease, or twice");
  }
  return {};
}

Result<void> AdoptedRecords::add(SequenceRecord record, std::span<const BlockId> own_blocks,
                                 const BlockPool& pool) {
  TRY(check_tokens(record));
  TRY(check_state(record));
  TRY(check_windows(record));
  TRY(check_blocks(record, own_blocks, pool));
  unshared_.insert(own_blocks.begin(), own_blocks.end());
  unshared_.insert(record.state.begin(), record.state.end());
  for (const Part& part : parts_of(record))
    uses_.try_emplace(part.block,
                      Use{.record = records_.size(), .index = part.index, .group = part.group});
  records_.push_back(std::move(record));
  return {};
}

/// The committed tokens in the block.
OwnedText AdoptedRecords::text_of(const SequenceRecord& record, std::uint32_t block,
                                  const TenantId& owner) const {
  const std::uint32_t from = block * model_.tokens_per_block;
  const std::uint32_t count = std::min(model_.tokens_per_block, record.committed - from);
  return {&owner, std::span(record.tokens).subspan(from, count),
          record.adapter ? &*record.adapter : nullptr};
}

/// Returns the number of blocks taken.
std::uint32_t AdoptedRecords::cache_state(const SequenceRecord& record, PrefixId end,
                                          BlockPool& pool, PrefixIndex& index) const {
  if (record.state.empty() || index.states().has(end)) return 0;
  for (const BlockId block : record.state) {
    const bool taken = pool.take(block);
    expects(taken, "a block of a state has no other use");
  }
  index.states().set(end, record.state);
  return model_.state_blocks;
}

/// Gives the entry of a block of the record's positions its blocks of layers with a window, unless
/// it has them, no row reads them, or another text has one of them. Returns the number of blocks
/// taken.
std::uint32_t AdoptedRecords::cache_window(const SequenceRecord& record, std::uint32_t block,
                                           PrefixId entry, BlockPool& pool,
                                           PrefixIndex& index) const {
  if (model_.window.n_groups == 0 || block < first_window(record) || index.windows().has(entry))
    return 0;
  const std::span<const BlockId> window = window_of(record, block);
  if (std::ranges::any_of(window, [&pool](BlockId each) { return pool.holds(each); })) return 0;
  for (const BlockId each : window) {
    const bool taken = pool.take(each);
    expects(taken, "a block that is not held can be taken");
  }
  index.windows().set(entry, {window.begin(), window.end()});
  return model_.window.n_groups;
}

std::uint32_t AdoptedRecords::cache(const TenantId& owner, BlockPool& pool,
                                    PrefixIndex& index) const {
  std::uint32_t cached = 0;
  std::vector<std::vector<PrefixId>> chains(records_.size());
  const auto add_next = [&](const SequenceRecord& record, std::vector<PrefixId>& chain) {
    const auto i = static_cast<std::uint32_t>(chain.size());
    const BlockId block = record.blocks[i];
    // A block that is already cached must not also be the partial last block of another record.
    const bool is_part = i == full_blocks(record);
    if (is_part && pool.holds(block)) return false;
    const auto entry = index.add_or_take(chain.empty() ? PrefixId{} : chain.back(),
                                         text_of(record, i, owner), block);
    if (!entry) return false;
    if (index.block(*entry) == block && pool.take(block)) ++cached;
    cached += cache_window(record, i, *entry, pool, index);
    chain.push_back(*entry);
    return true;
  };
  for (std::size_t i = 0; i < records_.size(); ++i) {
    const std::uint32_t full = full_blocks(records_[i]);
    while (chains[i].size() < full && add_next(records_[i], chains[i])) continue;
    if (full == 0 || chains[i].size() < full) continue;
    index.mark_end(chains[i].back());
    if (records_[i].committed % model_.tokens_per_block == 0)
      cached += cache_state(records_[i], chains[i].back(), pool, index);
  }
  for (std::size_t i = 0; i < records_.size(); ++i) {
    const bool has_part = records_[i].committed % model_.tokens_per_block != 0;
    if (has_part && chains[i].size() == full_blocks(records_[i]) &&
        add_next(records_[i], chains[i])) {
      index.mark_end(chains[i].back());
      cached += cache_state(records_[i], chains[i].back(), pool, index);
    }
    index.release(chains[i]);
  }
  return cached;
}

}  // namespace leasehold
