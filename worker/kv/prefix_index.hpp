/// The reusable KV blocks of one lease, found by their text. All of these blocks are full, except
/// the last blocks of adopted records.
///
/// Keys and values of a block depend on its tokens and on every token before them. An entry
/// therefore refers to its parent, the entry of the block before it, and a sequence uses a *chain*
/// of entries that starts at the first block. An entry is found by a 256-bit hash (BLAKE2b) of its
/// parent's hash and its tokens; for a first block, the hash of the owner, the authenticated
/// tenant, and of the adapter's content replaces the parent's hash. A lookup also compares parent,
/// owner, adapter and tokens, so a hash collision is a miss.
///
/// A running sequence references a whole chain, so the descendants of an unused entry are unused
/// too. The least recently used entry is evicted first and never has descendants. The first entry
/// of a chain is evicted last; with it goes the last cached block of every request that used the
/// chain.
///
/// An *end* is an entry for the end of an adopted record: its last full block and, if there is one,
/// the partly filled block after it. One sequence may take an end out of the index and continue the
/// text in its block.
///
/// Models with recurrent layers: an entry may also own the blocks of a *state*, a copy of the
/// recurrent state after the entry's last token. A sequence can only start where a state is, with
/// the chain up to that entry. A state leaves with its entry, or before it: when more states are
/// added than the index may hold, and when no unused entry is left to evict. The least recently
/// used state leaves first, whether or not its entry is used.
///
/// Models with layers that have a window: an entry may also own the blocks of these layers, which a
/// sequence only references while its rows read them. A sequence can only start where the blocks
/// that its next row reads are (length_with_windows). They leave with their entry, or before it:
/// those that a running sequence has left behind before all other cached blocks.
///
/// The index of a shared lease holds one published text, whose owner is `public_owner`. Sequences
/// of any tenant may borrow its chain; the index of their own lease counts these hits.
///
/// Lifetime: an index is part of its lease. Pure. Threads: one at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "common/content_digest.hpp"
#include "worker/kv/entry_blocks.hpp"
#include "worker/text/tokenizer/token_id.hpp"

namespace leasehold {

using PrefixKey = std::array<std::byte, 32>;

/// The key of a block whose parent has the key `parent`.
PrefixKey next_prefix_key(const PrefixKey& parent, std::span<const TokenId> tokens);

/// The owner of published text. It never equals a tenant, because a tenant's name is not empty.
const TenantId& public_owner();

/// A text, its owner and its adapter, as views.
struct OwnedText {
  const TenantId* owner = nullptr;  ///< The tenant to which the broker granted the lease.
  std::span<const TokenId> tokens;
  const ContentDigest* adapter = nullptr;  ///< Null: the keys and values are the base model's.

  /// `count` of the tokens, from token `from` on.
  OwnedText part(std::size_t from, std::size_t count = std::dynamic_extent) const {
    return {owner, tokens.subspan(from, count), adapter};
  }
};

/// The result of `match_again`, and the index's state at that time.
struct PrefixMatch {
  std::vector<PrefixId> chain;
  std::uint64_t added = 0;    ///< Entries added to the index until then.
  std::uint64_t removed = 0;  ///< Entries evicted or forgotten until then.
};

/// Counts of blocks since the index was created.
struct PrefixCounters {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t evictions = 0;
  std::uint64_t cross_tenant_hits = 0;  ///< Hits whose owner is not the taker. Always 0.
  std::uint64_t shared_hits = 0;        ///< Hits of published text; not part of `hits`.

  PrefixCounters& operator+=(const PrefixCounters& other);
};

class PrefixIndex {
 public:
  /// Limits the number of reports when a lease ends; each takes about a microsecond.
  static constexpr std::size_t kMaxUsers = 1024;
  /// Tests that need a collision pass another hash.
  using Hash = PrefixKey (*)(const PrefixKey& parent, std::span<const TokenId> tokens);
  PrefixIndex() = default;
  explicit PrefixIndex(Hash hash) : hash_(hash) {}

  /// The longest cached chain of full blocks for `text` without its last token.
  std::vector<PrefixId> match(const OwnedText& text, std::uint32_t tokens_per_block) const;

  /// Updates the match of a text. Hashes nothing if the index has not changed, and extends the
  /// chain if entries were only added. Precondition: the text is the same as before, or longer.
  void match_again(PrefixMatch& before, const OwnedText& text,
                   std::uint32_t tokens_per_block) const;

  /// References a chain for `taker`, which looked up `blocks` blocks.
  void take(std::span<const PrefixId> chain, const TenantId& taker, std::size_t blocks);

  /// References a chain of a published text. Counts the hits in this index, by the owners stored in
  /// the entries.
  void borrow(std::span<const PrefixId> chain, PrefixIndex& published);

  /// References a chain that was not looked up, so that it is never evicted.
  void keep(std::span<const PrefixId> chain);

  /// Adds the block that holds `block_text` after `parent`, with one reference. Returns nothing
  /// when that text is cached already, and when its key collides. Precondition: the caller
  /// references the parent.
  std::optional<PrefixId> add(PrefixId parent, const OwnedText& block_text, BlockId block);

  /// Like `add`, but references the entry of a text that is cached already.
  std::optional<PrefixId> add_or_take(PrefixId parent, const OwnedText& block_text, BlockId block);

  /// The states of the entries. A state is only set for an entry that exists.
  EntryBlocks& states() { return states_; }
  const EntryBlocks& states() const { return states_; }
  /// The blocks of layers with a window that the entries own.
  EntryBlocks& windows() { return windows_; }
  const EntryBlocks& windows() const { return windows_; }

  /// Marks an entry as an end. Its text may be shorter than a block.
  void mark_end(PrefixId id) { ends_.insert(id); }

  /// The block of an end, which belongs to the caller from then on.
  struct End {
    BlockId block;
    std::uint32_t positions = 0;  ///< Positions that hold the caller's text.
    std::vector<BlockId> state;   ///< The state after these positions, if ends have one.
    std::vector<BlockId> window;  ///< Its blocks of layers with a window, if it has them.
    /// Blocks of partly filled ends after it, which are removed with it.
    std::vector<BlockId> free;
  };
  /// Removes the unused end after `parent` that holds most of `rest`, a text without its last
  /// token. An end that is followed by a full block is not removed. With `needs_state`, only an end
  /// with a state whose whole text is the caller's.
  std::optional<End> take_tail(PrefixId parent, const OwnedText& rest, bool needs_state = false);
  /// An end that `take_tail` with the same arguments removes.
  struct Tail {
    PrefixId id;
    std::uint32_t positions = 0;
    std::set<PrefixId> removed;  ///< With it.
  };
  std::optional<Tail> find_tail(PrefixId parent, const OwnedText& rest, bool needs_state) const;

  /// Releases one reference to every entry of a chain. Precondition: it is a whole chain.
  void release(std::span<const PrefixId> chain);

  /// Hides an entry and all its descendants from lookups; they stay until they are evicted.
  void forget(PrefixId id);

  /// Keeps the id of a request that used the chain beginning with `first`, until none of its blocks
  /// can be found. An id is kept once: if a preempted request is added again, its second id leaves
  /// at once. Beyond kMaxUsers ids, an id of the oldest chain leaves early.
  void add_user(PrefixId first, const RequestId& engine_request_id);
  /// The ids that left since the last call, once for each `add_user`.
  std::vector<RequestId> take_gone_users() { return std::exchange(gone_users_, {}); }
  /// Makes all ids leave, because the lease ends.
  void drop_users();

  /// Removes blocks of layers with a window that running sequences have left, then unused entries,
  /// the least recently used first, then unused blocks and states of used entries, until `count`
  /// blocks are free or nothing is left. Returns the blocks, which may be more.
  std::vector<BlockId> evict(std::uint32_t count);
  /// Removes the unused entries whose block lies in the extent, and all their descendants, and the
  /// states and unused blocks of layers with a window that have a block in it.
  std::vector<BlockId> evict_extent(ExtentId extent);

  bool contains(PrefixId id) const { return entries_.contains(id); }
  BlockId block(PrefixId id) const { return entries_.at(id).block; }
  std::uint32_t references(PrefixId id) const { return entries_.at(id).references; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(entries_.size()); }
  /// Blocks that can be evicted: those of entries that no sequence references, unused ones of
  /// layers with a window, and all states.
  std::uint32_t unused() const {
    return static_cast<std::uint32_t>(unused_.size()) + windows_.unused() + states_.unused();
  }
  /// Entries of the chain that no sequence references.
  std::uint32_t unused_of(std::span<const PrefixId> chain) const;
  std::map<ExtentId, std::uint32_t> unused_by_extent() const;
  std::vector<PrefixId> entries() const;
  const PrefixCounters& counters() const { return counters_; }

 private:
  struct Entry {
    bool belongs_to(const OwnedText& text) const;

    PrefixId parent;
    PrefixKey key;
    TenantId owner;
    std::optional<ContentDigest> adapter;
    std::vector<TokenId> tokens;
    BlockId block;
    std::uint32_t references = 0;
    // release count when it became unused; greater for a parent than for its children
    std::uint64_t released = 0;
    bool is_forgotten = false;
  };
  void extend(std::vector<PrefixId>& chain, const OwnedText& text,
              std::uint32_t tokens_per_block) const;
  PrefixKey key_of(PrefixId parent, const OwnedText& block_text) const;
  std::optional<PrefixId> find(PrefixId parent, const OwnedText& block_text) const;
  bool is_forgotten(PrefixId id) const { return id.value != 0 && entries_.at(id).is_forgotten; }
  void reference(PrefixId id);
  std::set<PrefixId> with_descendants(std::set<PrefixId> ids) const;
  std::uint32_t positions_of_end(PrefixId id, PrefixId parent, const OwnedText& rest) const;
  void remove(PrefixId id, std::vector<BlockId>& blocks);
  void drop_users_of(PrefixId first);

  Hash hash_ = next_prefix_key;
  std::map<PrefixId, Entry> entries_;  // a parent precedes its children
  std::map<PrefixKey, PrefixId> by_key_;
  std::map<std::uint64_t, PrefixId> unused_;  // by `released`
  std::set<PrefixId> ends_;
  EntryBlocks states_;
  EntryBlocks windows_;
  std::multimap<PrefixId, RequestId> users_;  // by the first entry of their chain
  std::vector<RequestId> gone_users_;
  std::uint64_t last_id_ = 0;
  std::uint64_t removals_ = 0;  // entries that were evicted or forgotten
  std::uint64_t releases_ = 0;
  PrefixCounters counters_;
};

}  // namespace leasehold
