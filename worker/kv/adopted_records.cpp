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

/// True unless an earlier record lists the block for another text.
bool AdoptedRecords::is_same_text(const SequenceRecord& record, std::uint32_t block) const {
  const auto used = uses_.find(record.blocks[block]);
  if (used == uses_.end()) return true;
  const std::size_t tokens = std::size_t{block + 1} * model_.tokens_per_block;
  const std::vector<TokenId>& other = records_[used->second.record].tokens;
  return used->second.block == block && tokens <= other.size() && tokens <= record.tokens.size() &&
         std::equal(other.begin(), other.begin() + static_cast<std::ptrdiff_t>(tokens),
                    record.tokens.begin());
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
  for (std::uint32_t i = 0; i < record.blocks.size(); ++i) {
    const BlockId block = record.blocks[i];
    if (!pool.contains(block))
      return wrong(record,
                   "names a block outside the lease, as that of a reader of a published text does");
    if (!named.insert(block).second) return wrong(record, "names a block twice");
    if (unshared_.contains(block) || !is_same_text(record, i))
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
  TRY(check_blocks(record, own_blocks, pool));
  unshared_.insert(own_blocks.begin(), own_blocks.end());
  unshared_.insert(record.state.begin(), record.state.end());
  for (std::uint32_t i = 0; i < record.blocks.size(); ++i)
    uses_.try_emplace(record.blocks[i], Use{.record = records_.size(), .block = i});
  records_.push_back(std::move(record));
  return {};
}

/// The committed tokens in the block.
OwnedText AdoptedRecords::text_of(const SequenceRecord& record, std::uint32_t block,
                                  const TenantId& owner) const {
  const std::uint32_t from = block * model_.tokens_per_block;
  const std::uint32_t count = std::min(model_.tokens_per_block, record.committed - from);
  return {&owner, std::span(record.tokens).subspan(from, count)};
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
