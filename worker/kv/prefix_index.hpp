/// The KV blocks of one lease that can be used again, found by the text that they hold. All are
/// full but the last ones of adopted records.
///
/// Keys and values of a block depend on its tokens and on every token before it. So an entry names
/// its parent, the entry of the block before, and a sequence uses a *chain* of entries from the
/// first block on. An entry is found by a 256-bit hash (BLAKE2b) of its parent's hash and its
/// tokens; the first one has the hash of its owner, the authenticated tenant, as its parent's. A
/// lookup also compares parent, owner and tokens, so a hash that collides is a miss.
///
/// A running sequence references a whole chain. So only unused entries follow an unused one, and
/// the entry evicted first, the least recently used, has none after it. Of a chain the first entry
/// goes last: with it the last cached block of every request that used the chain.
///
/// An *end* is the last entry of an adopted record: its last block, full or not, and the full one
/// before a part. One sequence takes an end out of the index and writes behind the text in it.
///
/// The index of a shared lease holds one published text, whose owner is `public_owner`. Sequences
/// of any tenant may borrow its chain, and count that in the index of their own lease.
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

#include "worker/kv/block_pool.hpp"
#include "worker/text/tokenizer/token_id.hpp"

namespace leasehold {

using PrefixKey = std::array<std::byte, 32>;
using PrefixId = StrongId<struct PrefixTag>;  ///< An entry; never reused. 0: before the first one.

/// The key of the block that follows the one with key `parent`.
PrefixKey next_prefix_key(const PrefixKey& parent, std::span<const TokenId> tokens);

/// The owner of published text: no tenant, because a tenant's name is not empty.
const TenantId& public_owner();

/// A text as an index knows it. Views.
struct OwnedText {
  const TenantId* owner = nullptr;  ///< As the broker granted the lease to it.
  std::span<const TokenId> tokens;
};

/// What `match_again` found, and when.
struct PrefixMatch {
  std::vector<PrefixId> chain;
  std::uint64_t added = 0;    ///< Entries of the index by then.
  std::uint64_t removed = 0;  ///< Entries that could not be found any more.
};

/// In blocks, since the index exists.
struct PrefixCounters {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t evictions = 0;
  std::uint64_t cross_tenant_hits = 0;  ///< Of another owner than the taker. Always 0.
  std::uint64_t shared_hits = 0;        ///< Of published text; not part of `hits`.

  PrefixCounters& operator+=(const PrefixCounters& other);
};

class PrefixIndex {
 public:
  /// Bounds the reports at the end of a lease; each takes about a microsecond.
  static constexpr std::size_t kMaxUsers = 1024;
  /// Tests that need a collision pass another hash.
  using Hash = PrefixKey (*)(const PrefixKey& parent, std::span<const TokenId> tokens);
  PrefixIndex() = default;
  explicit PrefixIndex(Hash hash) : hash_(hash) {}

  /// The longest cached chain of full blocks for `text`, without its last token.
  std::vector<PrefixId> match(const OwnedText& text, std::uint32_t tokens_per_block) const;

  /// Brings the match of a text up to date. Hashes nothing while the index does not change, and
  /// continues the chain when entries were only added. Precondition: the text is the same as
  /// before, or longer.
  void match_again(PrefixMatch& before, const OwnedText& text,
                   std::uint32_t tokens_per_block) const;

  /// References a chain for `taker`, which looked up `blocks` blocks.
  void take(std::span<const PrefixId> chain, const TenantId& taker, std::size_t blocks);

  /// References a chain of a published text. Counts here what the owners stored in the blocks say.
  void borrow(std::span<const PrefixId> chain, PrefixIndex& published);

  /// References a chain without a lookup, so that it is never evicted.
  void keep(std::span<const PrefixId> chain);

  /// Adds the block that holds `block_text` after `parent`, with one reference. Returns nothing
  /// when that text is cached already, and when its key collides. Precondition: the caller
  /// references the parent.
  std::optional<PrefixId> add(PrefixId parent, const OwnedText& block_text, BlockId block);

  /// Like `add`, but references the entry of a text that is cached already.
  std::optional<PrefixId> add_or_take(PrefixId parent, const OwnedText& block_text, BlockId block);

  /// The entry is an end. Its text may be shorter than a block.
  void mark_end(PrefixId id) { ends_.insert(id); }

  /// The block of an end, which belongs to the caller from then on.
  struct End {
    BlockId block;
    std::uint32_t positions = 0;  ///< That hold the caller's text.
    std::vector<BlockId> free;    ///< Of parts behind it, which are removed with it.
  };
  /// Removes the unused end after `parent` that has most of `rest`, a text without its last token.
  /// Leaves one that a full block follows.
  std::optional<End> adopt_end(PrefixId parent, const OwnedText& rest);

  /// Gives back one reference to every entry of a chain. Precondition: it is a whole chain.
  void release(std::span<const PrefixId> chain);

  /// Makes an entry and all that follow it impossible to find; they stay until they are evicted.
  void forget(PrefixId id);

  /// Keeps the id of a request that used the chain beginning with `first`, until none of its blocks
  /// can be found. An id is kept once: that of a request that was preempted leaves again at once.
  /// Beyond kMaxUsers ids, one of the oldest chain leaves early.
  void add_user(PrefixId first, const RequestId& engine_request_id);
  /// The ids that left since the last call, once for each `add_user`.
  std::vector<RequestId> take_gone_users() { return std::exchange(gone_users_, {}); }
  /// All ids leave: the lease ends.
  void drop_users();

  /// Removes up to `count` unused entries, the least recently used first. Returns their blocks.
  std::vector<BlockId> evict(std::uint32_t count);
  /// Removes the unused entries whose block lies in the extent, and all that follow them.
  std::vector<BlockId> evict_extent(ExtentId extent);

  BlockId block(PrefixId id) const { return entries_.at(id).block; }
  std::uint32_t references(PrefixId id) const { return entries_.at(id).references; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(entries_.size()); }
  /// Entries that no sequence references.
  std::uint32_t unused() const { return static_cast<std::uint32_t>(unused_.size()); }
  std::uint32_t unused_of(std::span<const PrefixId> chain) const;
  std::map<ExtentId, std::uint32_t> unused_by_extent() const;
  std::vector<PrefixId> entries() const;
  const PrefixCounters& counters() const { return counters_; }

 private:
  struct Entry {
    PrefixId parent;
    PrefixKey key;
    TenantId owner;
    std::vector<TokenId> tokens;
    BlockId block;
    std::uint32_t references = 0;
    std::uint64_t released = 0;  // when it became unused; later for a parent than for its children
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
  BlockId remove(PrefixId id);
  BlockId evict_one(PrefixId id);
  void drop_users_of(PrefixId first);

  Hash hash_ = next_prefix_key;
  std::map<PrefixId, Entry> entries_;  // a parent precedes its children
  std::map<PrefixKey, PrefixId> by_key_;
  std::map<std::uint64_t, PrefixId> unused_;  // by `released`
  std::set<PrefixId> ends_;
  std::multimap<PrefixId, RequestId> users_;  // by the first entry of their chain
  std::vector<RequestId> gone_users_;
  std::uint64_t last_id_ = 0;
  std::uint64_t removals_ = 0;  // entries that were evicted or forgotten
  std::uint64_t releases_ = 0;
  PrefixCounters counters_;
};

}  // namespace leasehold
