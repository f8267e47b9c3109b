#include "worker/kv/entry_blocks.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/expects.hpp"

namespace leasehold {

void EntryBlocks::become_unused(PrefixId id, Entry& entry, Turn turn) {
  unused_ += static_cast<std::uint32_t>(entry.blocks.size());
  entry.age = {turn, ++last_age_};
  by_age_.emplace(entry.age, id);
}

void EntryBlocks::become_used(const Entry& entry) {
  unused_ -= static_cast<std::uint32_t>(entry.blocks.size());
  by_age_.erase(entry.age);
}

void EntryBlocks::set(PrefixId id, std::vector<BlockId> blocks) {
  expects(!has(id) && !blocks.empty(), "an entry gets its blocks once");
  Entry& entry = entries_[id];
  entry.blocks = std::move(blocks);
  become_unused(id, entry, Turn::Usual);
}

void EntryBlocks::reference(std::span<const PrefixId> ids) {
  for (const PrefixId id : ids) {
    Entry& entry = entries_.at(id);
    if (entry.references++ == 0) become_used(entry);
  }
}

void EntryBlocks::release(PrefixId id, Turn turn) {
  Entry& entry = entries_.at(id);
  expects(entry.references > 0, "released blocks were referenced");
  if (--entry.references == 0) become_unused(id, entry, turn);
}

std::vector<BlockId> EntryBlocks::take(PrefixId id) {
  auto found = entries_.extract(id);
  if (!found) return {};
  expects(found.mapped().references == 0, "only unused blocks are taken");
  become_used(found.mapped());
  return std::move(found.mapped().blocks);
}

std::vector<BlockId> EntryBlocks::take_oldest() {
  return by_age_.empty() ? std::vector<BlockId>{} : take(by_age_.begin()->second);
}

std::vector<BlockId> EntryBlocks::limit(std::uint32_t most) {
  std::vector<BlockId> taken;
  while (unused_ > most) std::ranges::copy(take_oldest(), std::back_inserter(taken));
  return taken;
}

std::vector<BlockId> EntryBlocks::take_in(ExtentId extent) {
  std::vector<PrefixId> ids;
  for (const auto& [age, id] : by_age_) {
    const auto lies_there = [extent](BlockId block) { return block.extent == extent; };
    if (std::ranges::any_of(of(id), lies_there)) ids.push_back(id);
  }
  std::vector<BlockId> taken;
  for (const PrefixId id : ids) std::ranges::copy(take(id), std::back_inserter(taken));
  return taken;
}

std::span<const BlockId> EntryBlocks::of(PrefixId id) const {
  const auto found = entries_.find(id);
  return found == entries_.end() ? std::span<const BlockId>{} : found->second.blocks;
}

void EntryBlocks::count_by_extent(std::map<ExtentId, std::uint32_t>& counts) const {
  for (const auto& [age, id] : by_age_)
    for (const BlockId block : of(id)) ++counts[block.extent];
}

std::uint32_t EntryBlocks::unused_of(std::span<const PrefixId> ids) const {
  std::uint32_t unused = 0;
  for (const PrefixId id : ids)
    if (references(id) == 0) unused += static_cast<std::uint32_t>(of(id).size());
  return unused;
}

}  // namespace leasehold
