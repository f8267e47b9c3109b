#include "worker/kv/prefix_index.hpp"

#include <sodium.h>

#include <algorithm>
#include <iterator>
#include <ranges>

#include "common/expects.hpp"

namespace leasehold {
namespace {

PrefixKey keyed_hash(std::span<const std::byte> key, std::span<const std::byte> message) {
  PrefixKey hash{};
  static_assert(hash.size() == crypto_generichash_BYTES);
  const int failed =
      ::crypto_generichash(reinterpret_cast<unsigned char*>(hash.data()), hash.size(),
                           reinterpret_cast<const unsigned char*>(message.data()), message.size(),
                           reinterpret_cast<const unsigned char*>(key.data()), key.size());
  ensures(failed == 0, "a hash of 32 bytes with a key of at most 64 can be computed");
  return hash;
}

/// The key used as the parent of a text's first block.
PrefixKey salt_of(const OwnedText& text) {
  const std::span<const std::byte> adapter = text.adapter == nullptr
                                                 ? std::span<const std::byte>{}
                                                 : std::as_bytes(std::span(text.adapter->bytes));
  return keyed_hash(adapter, std::as_bytes(std::span(text.owner->value)));
}

}  // namespace

const TenantId& public_owner() {
  static const TenantId kPublic;
  return kPublic;
}

/// Hashes the parent as part of the message, because a BLAKE2b key would take an additional block.
PrefixKey next_prefix_key(const PrefixKey& parent, std::span<const TokenId> tokens) {
  const auto text = std::as_bytes(tokens);
  ::crypto_generichash_state state;
  PrefixKey hash{};
  const bool ok =
      ::crypto_generichash_init(&state, nullptr, 0, hash.size()) == 0 &&
      ::crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(parent.data()),
                                  parent.size()) == 0 &&
      ::crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(text.data()),
                                  text.size()) == 0 &&
      ::crypto_generichash_final(&state, reinterpret_cast<unsigned char*>(hash.data()),
                                 hash.size()) == 0;
  ensures(ok, "a hash of 32 bytes can be computed");
  return hash;
}

PrefixCounters& PrefixCounters::operator+=(const PrefixCounters& other) {
  hits += other.hits;
  misses += other.misses;
  evictions += other.evictions;
  cross_tenant_hits += other.cross_tenant_hits;
  shared_hits += other.shared_hits;
  return *this;
}

bool PrefixIndex::Entry::belongs_to(const OwnedText& text) const {
  if (owner != *text.owner) return false;
  return text.adapter == nullptr ? !adapter : adapter == *text.adapter;
}

PrefixKey PrefixIndex::key_of(PrefixId parent, const OwnedText& block_text) const {
  const PrefixKey before = parent.value == 0 ? salt_of(block_text) : entries_.at(parent).key;
  return hash_(before, block_text.tokens);
}

std::optional<PrefixId> PrefixIndex::find(PrefixId parent, const OwnedText& block_text) const {
  const auto found = by_key_.find(key_of(parent, block_text));
  if (found == by_key_.end()) return std::nullopt;
  const Entry& entry = entries_.at(found->second);
  if (entry.parent != parent) return std::nullopt;
  if (!entry.belongs_to(block_text)) return std::nullopt;
  if (!std::ranges::equal(entry.tokens, block_text.tokens)) return std::nullopt;
  return found->second;
}

std::vector<PrefixId> PrefixIndex::match(const OwnedText& text,
                                         std::uint32_t tokens_per_block) const {
  std::vector<PrefixId> chain;
  extend(chain, text, tokens_per_block);
  return chain;
}

void PrefixIndex::match_again(PrefixMatch& before, const OwnedText& text,
                              std::uint32_t tokens_per_block) const {
  if (before.removed != removals_) before = {.removed = removals_};
  if (before.added == last_id_) return;
  extend(before.chain, text, tokens_per_block);
  before.added = last_id_;
}

void PrefixIndex::extend(std::vector<PrefixId>& chain, const OwnedText& text,
                         std::uint32_t tokens_per_block) const {
  PrefixId parent = chain.empty() ? PrefixId{} : chain.back();
  const std::size_t usable = text.tokens.empty() ? 0 : text.tokens.size() - 1;
  for (std::size_t at = chain.size() * tokens_per_block; at + tokens_per_block <= usable;
       at += tokens_per_block) {
    const auto next = find(parent, text.part(at, tokens_per_block));
    if (!next) break;
    chain.push_back(*next);
    parent = *next;
  }
}

void PrefixIndex::reference(PrefixId id) {
  Entry& entry = entries_.at(id);
  if (entry.references++ == 0) unused_.erase(entry.released);
}

void PrefixIndex::take(std::span<const PrefixId> chain, const TenantId& taker, std::size_t blocks) {
  expects(chain.size() <= blocks, "a chain is part of what was looked up");
  for (const PrefixId id : chain) {
    reference(id);
    if (entries_.at(id).owner != taker) ++counters_.cross_tenant_hits;
  }
  counters_.hits += chain.size();
  counters_.misses += blocks - chain.size();
}

void PrefixIndex::borrow(std::span<const PrefixId> chain, PrefixIndex& published) {
  published.keep(chain);
  for (const PrefixId id : chain) {
    const bool is_public = published.entries_.at(id).owner == public_owner();
    ++(is_public ? counters_.shared_hits : counters_.cross_tenant_hits);
  }
}

void PrefixIndex::keep(std::span<const PrefixId> chain) {
  for (const PrefixId id : chain) reference(id);
}

std::optional<PrefixId> PrefixIndex::add(PrefixId parent, const OwnedText& block_text,
                                         BlockId block) {
  if (is_forgotten(parent)) return std::nullopt;
  const PrefixKey key = key_of(parent, block_text);
  const PrefixId id{last_id_ + 1};
  if (!by_key_.emplace(key, id).second) return std::nullopt;
  ++last_id_;
  entries_.emplace(
      id, Entry{.parent = parent,
                .key = key,
                .owner = *block_text.owner,
                .adapter = block_text.adapter == nullptr ? std::nullopt
                                                         : std::optional(*block_text.adapter),
                .tokens = {block_text.tokens.begin(), block_text.tokens.end()},
                .block = block,
                .references = 1});
  return id;
}

std::optional<PrefixId> PrefixIndex::add_or_take(PrefixId parent, const OwnedText& block_text,
                                                 BlockId block) {
  const auto known = find(parent, block_text);
  if (!known) return add(parent, block_text, block);
  reference(*known);
  return known;
}

void PrefixIndex::release(std::span<const PrefixId> chain) {
  for (const PrefixId id :
       std::views::reverse(chain)) {  // children first, so they are evicted first
    Entry& entry = entries_.at(id);
    expects(entry.references > 0, "a released entry was referenced");
    if (--entry.references > 0) continue;
    entry.released = ++releases_;
    unused_.emplace(entry.released, id);
  }
}

std::set<PrefixId> PrefixIndex::with_descendants(std::set<PrefixId> ids) const {
  for (const auto& [id, entry] : entries_) {
    if (ids.contains(entry.parent)) ids.insert(id);
  }
  return ids;
}

void PrefixIndex::forget(PrefixId id) {
  for (const PrefixId each : with_descendants({id})) {
    Entry& entry = entries_.at(each);
    if (std::exchange(entry.is_forgotten, true)) continue;
    by_key_.erase(entry.key);
    ++removals_;
    drop_users_of(each);
  }
}

/// Appends all blocks that the entry owns to `blocks`.
void PrefixIndex::remove(PrefixId id, std::vector<BlockId>& blocks) {
  std::ranges::copy(states_.take(id), std::back_inserter(blocks));
  std::ranges::copy(windows_.take(id), std::back_inserter(blocks));
  const auto found = entries_.find(id);
  const Entry& entry = found->second;
  expects(entry.references == 0, "only an unused entry is removed");
  unused_.erase(entry.released);
  if (!entry.is_forgotten) by_key_.erase(entry.key);
  blocks.push_back(entry.block);
  entries_.erase(found);
  ends_.erase(id);
  drop_users_of(id);
  ++removals_;
}

// ----------------------------------------------------------------------------------------- ends

/// The number of positions of `rest` that the end `id` holds; 0 if its block cannot be taken.
std::uint32_t PrefixIndex::positions_of_end(PrefixId id, PrefixId parent,
                                            const OwnedText& rest) const {
  const Entry& entry = entries_.at(id);
  const bool is_usable = entry.parent == parent && entry.references == 0 && !entry.is_forgotten &&
                         entry.belongs_to(rest);
  if (!is_usable) return 0;
  const std::size_t known = std::min(entry.tokens.size(), rest.tokens.size());
  if (!std::ranges::equal(std::span(entry.tokens).first(known), rest.tokens.first(known))) return 0;
  return static_cast<std::uint32_t>(known);
}

std::optional<PrefixIndex::Tail> PrefixIndex::find_tail(PrefixId parent, const OwnedText& rest,
                                                        bool needs_state) const {
  std::optional<Tail> most;
  for (const PrefixId id : ends_) {
    const std::uint32_t positions = positions_of_end(id, parent, rest);
    if (positions <= (most ? most->positions : 0)) continue;
    const std::size_t size = entries_.at(id).tokens.size();
    if (needs_state && (!states_.has(id) || positions < size)) continue;
    std::set<PrefixId> with_followers = with_descendants({id});
    const auto is_kept = [&](PrefixId each) {
      return each != id && entries_.at(each).tokens.size() >= size;  // a full block
    };
    if (std::ranges::any_of(with_followers, is_kept)) continue;
    most = {.id = id, .positions = positions, .removed = std::move(with_followers)};
  }
  return most;
}

std::optional<PrefixIndex::End> PrefixIndex::take_tail(PrefixId parent, const OwnedText& rest,
                                                       bool needs_state) {
  const std::optional<Tail> tail = find_tail(parent, rest, needs_state);
  if (!tail) return std::nullopt;
  End taken{.block = block(tail->id),
            .positions = tail->positions,
            .state = {},
            .window = windows_.take(tail->id),
            .free = {}};
  if (needs_state) taken.state = states_.take(tail->id);
  for (const PrefixId id : tail->removed) remove(id, taken.free);
  std::erase(taken.free, taken.block);
  return taken;
}

void PrefixIndex::add_user(PrefixId first, const RequestId& engine_request_id) {
  expects(entries_.at(first).parent.value == 0, "a request is known by the first entry of a chain");
  const auto [begin, end] = users_.equal_range(first);
  const bool is_known =
      std::any_of(begin, end, [&](const auto& user) { return user.second == engine_request_id; });
  if (is_known || is_forgotten(first)) return gone_users_.push_back(engine_request_id);
  users_.emplace(first, engine_request_id);
  if (users_.size() <= kMaxUsers) return;
  gone_users_.push_back(std::move(users_.begin()->second));
  users_.erase(users_.begin());
}

void PrefixIndex::drop_users_of(PrefixId first) {
  const auto [begin, end] = users_.equal_range(first);
  for (auto user = begin; user != end; ++user) gone_users_.push_back(std::move(user->second));
  users_.erase(begin, end);
}

void PrefixIndex::drop_users() {
  for (auto& [first, id] : users_) gone_users_.push_back(std::move(id));
  users_.clear();
}

std::vector<BlockId> PrefixIndex::evict(std::uint32_t count) {
  std::vector<BlockId> blocks;
  const auto take_oldest = [&blocks](EntryBlocks& from) {
    std::ranges::copy(from.take_oldest(), std::back_inserter(blocks));
  };
  const std::size_t before = entries_.size();
  while (blocks.size() < count && windows_.has_early()) take_oldest(windows_);
  while (blocks.size() < count && !unused_.empty()) remove(unused_.begin()->second, blocks);
  while (blocks.size() < count && windows_.unused() > 0) take_oldest(windows_);
  while (blocks.size() < count && states_.unused() > 0) take_oldest(states_);
  counters_.evictions += before - entries_.size();
  return blocks;
}

std::vector<BlockId> PrefixIndex::evict_extent(ExtentId extent) {
  const auto lies_there = [extent](BlockId block) { return block.extent == extent; };
  std::set<PrefixId> ids;
  for (const auto& [released, id] : unused_) {
    if (lies_there(entries_.at(id).block)) ids.insert(id);
  }
  const std::size_t before = entries_.size();
  std::vector<BlockId> blocks;
  for (const PrefixId id : with_descendants(std::move(ids))) remove(id, blocks);
  counters_.evictions += before - entries_.size();
  std::ranges::copy(windows_.take_in(extent), std::back_inserter(blocks));
  std::ranges::copy(states_.take_in(extent), std::back_inserter(blocks));
  return blocks;
}

std::uint32_t PrefixIndex::unused_of(std::span<const PrefixId> chain) const {
  return static_cast<std::uint32_t>(
      std::ranges::count_if(chain, [this](PrefixId id) { return references(id) == 0; }));
}

std::map<ExtentId, std::uint32_t> PrefixIndex::unused_by_extent() const {
  std::map<ExtentId, std::uint32_t> counts;
  for (const auto& [released, id] : unused_) ++counts[entries_.at(id).block.extent];
  windows_.count_by_extent(counts);
  states_.count_by_extent(counts);
  return counts;
}

std::vector<PrefixId> PrefixIndex::entries() const {
  const auto ids = std::views::keys(entries_);
  return {ids.begin(), ids.end()};
}

}  // namespace leasehold
