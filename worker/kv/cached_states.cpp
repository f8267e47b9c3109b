#include "worker/kv/cached_states.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/expects.hpp"

namespace leasehold {

void CachedStates::set(PrefixId id, std::vector<BlockId> blocks) {
  expects(!has(id) && !blocks.empty(), "an entry has one state");
  blocks_ += static_cast<std::uint32_t>(blocks.size());
  states_.emplace(id, State{.blocks = std::move(blocks), .age = ++last_age_});
  by_age_.emplace(last_age_, id);
}

std::vector<BlockId> CachedStates::take(PrefixId id) {
  auto found = states_.extract(id);
  if (!found) return {};
  by_age_.erase(found.mapped().age);
  blocks_ -= static_cast<std::uint32_t>(found.mapped().blocks.size());
  return std::move(found.mapped().blocks);
}

std::vector<BlockId> CachedStates::take_oldest() {
  return by_age_.empty() ? std::vector<BlockId>{} : take(by_age_.begin()->second);
}

std::vector<BlockId> CachedStates::limit(std::uint32_t most) {
  std::vector<BlockId> taken;
  while (blocks_ > most) std::ranges::copy(take_oldest(), std::back_inserter(taken));
  return taken;
}

std::vector<BlockId> CachedStates::take_in(ExtentId extent) {
  std::vector<PrefixId> ids;
  for (const auto& [id, state] : states_) {
    const auto lies_there = [extent](BlockId block) { return block.extent == extent; };
    if (std::ranges::any_of(state.blocks, lies_there)) ids.push_back(id);
  }
  std::vector<BlockId> taken;
  for (const PrefixId id : ids) std::ranges::copy(take(id), std::back_inserter(taken));
  return taken;
}

std::span<const BlockId> CachedStates::of(PrefixId id) const {
  const auto found = states_.find(id);
  return found == states_.end() ? std::span<const BlockId>{} : found->second.blocks;
}

void CachedStates::count_by_extent(std::map<ExtentId, std::uint32_t>& counts) const {
  for (const auto& [id, state] : states_)
    for (const BlockId block : state.blocks) ++counts[block.extent];
}

}  // namespace leasehold
