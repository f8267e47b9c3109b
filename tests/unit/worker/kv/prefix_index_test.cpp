#include "worker/kv/prefix_index.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>

#include "common/random.hpp"

namespace leasehold {
namespace {

constexpr std::uint32_t kBlockTokens = 4;
const TenantId kAlice{"alice"};
const TenantId kBob{"bob"};

using Text = std::vector<TokenId>;
using Ids = std::vector<RequestId>;

BlockId block(std::uint32_t index, std::uint64_t extent = 1) {
  return {ExtentId{extent}, index};
}

Text numbered(std::size_t count, TokenId from = 0) {
  Text tokens;
  for (std::size_t i = 0; i < count; ++i) tokens.push_back(from + static_cast<TokenId>(i));
  return tokens;
}

/// Adds all full blocks of a text, in these blocks and those that follow, and releases them.
std::vector<PrefixId> cache(PrefixIndex& index, const TenantId& owner, const Text& text,
                            BlockId first) {
  std::vector<PrefixId> chain;
  PrefixId parent;
  for (std::size_t at = 0; at + kBlockTokens <= text.size(); at += kBlockTokens) {
    const auto added =
        index.add_or_take(parent, {&owner, std::span(text).subspan(at, kBlockTokens)}, first);
    if (!added) break;
    chain.push_back(*added);
    parent = *added;
    ++first.index;
  }
  index.release(chain);
  return chain;
}

std::vector<PrefixId> match(const PrefixIndex& index, const TenantId& owner, const Text& text) {
  return index.match({&owner, text}, kBlockTokens);
}

PrefixKey same_key(const PrefixKey&, std::span<const TokenId>) {
  return {};
}

}  // namespace

TEST_CASE(
    "prefix index: the longest cached chain is found, and the last token is left to compute") {
  PrefixIndex index;
  const auto chain = cache(index, kAlice, numbered(12), block(0));
  REQUIRE(chain.size() == 3);
  CHECK(match(index, kAlice, numbered(13)) == chain);
  CHECK(match(index, kAlice, numbered(12)).size() == 2);
  CHECK(match(index, kAlice, numbered(9)).size() == 2);
  CHECK(match(index, kAlice, numbered(8)).size() == 1);
  CHECK(match(index, kAlice, numbered(1)).empty());
  Text other = numbered(13);
  other[6] = 99;  // in the second block
  CHECK(match(index, kAlice, other).size() == 1);
  CHECK(match(index, kAlice, numbered(13, 4)).empty());  // the second block is not a first one
}

TEST_CASE("prefix index: two tenants with one text each find their own blocks and no other") {
  PrefixIndex index;
  const auto alices = cache(index, kAlice, numbered(12), block(0));
  CHECK(match(index, kBob, numbered(13)).empty());
  const auto bobs = cache(index, kBob, numbered(12), block(10));
  REQUIRE(bobs.size() == 3);  // a key without the tenant would collide with Alice's
  CHECK(match(index, kAlice, numbered(13)) == alices);
  CHECK(match(index, kBob, numbered(13)) == bobs);
  index.take(bobs, kBob, 3);
  CHECK(index.counters().cross_tenant_hits == 0);
}

TEST_CASE("prefix index: a block of another tenant is a miss, also when its key collides") {
  PrefixIndex index(same_key);
  const auto alices = cache(index, kAlice, numbered(4), block(0));
  REQUIRE(match(index, kAlice, numbered(5)) == alices);
  const auto bobs = match(index, kBob, numbered(5));
  index.take(bobs, kBob, 1);
  CHECK(bobs.empty());
  CHECK(index.counters().cross_tenant_hits == 0);
  CHECK(index.counters().misses == 1);
}

TEST_CASE(
    "prefix index: text of another adapter, or of none, is a miss, also when its key collides") {
  const ContentDigest first{{1}};
  const ContentDigest second{{2}};
  const std::vector<const ContentDigest*> adapters{nullptr, &first, &second};
  for (const PrefixIndex::Hash hash : {next_prefix_key, same_key}) {
    for (const ContentDigest* cached : adapters) {
      PrefixIndex index(hash);
      const Text text = numbered(9);
      const OwnedText owned{&kAlice, text, cached};
      const auto entry = index.add({}, owned.part(0, kBlockTokens), block(0));
      REQUIRE(entry);
      for (const ContentDigest* asked : adapters)
        CHECK(index.match({&kAlice, text, asked}, kBlockTokens).size() ==
              (asked == cached ? 1 : 0));
    }
  }
}

TEST_CASE("prefix index: a key that collides is a miss, and its block is not added") {
  PrefixIndex index(same_key);
  const auto chain = cache(index, kAlice, numbered(4), block(0));
  CHECK(match(index, kAlice, numbered(5, 7)).empty());                // other tokens
  CHECK(match(index, kAlice, {0, 1, 2, 3, 0, 1, 2, 3, 4}) == chain);  // same tokens, other parent
  CHECK(cache(index, kAlice, numbered(4, 7), block(1)).empty());
  CHECK(index.size() == 1);
}

TEST_CASE("prefix index: a borrowed block counts as shared only if its owner is the public") {
  PrefixIndex own, published;
  const auto text = cache(published, public_owner(), numbered(8), block(0));
  const auto leaked = cache(published, kAlice, numbered(4, 50), block(5));
  own.borrow(text, published);
  CHECK(own.counters().shared_hits == 2);
  CHECK(own.counters().cross_tenant_hits == 0);
  own.borrow(leaked, published);
  CHECK(own.counters().shared_hits == 2);
  CHECK(own.counters().cross_tenant_hits == 1);
}

TEST_CASE("prefix index: taking a block of another owner would be counted") {
  PrefixIndex index;
  index.take(cache(index, kAlice, numbered(8), block(0)), kBob, 2);
  CHECK(index.counters().cross_tenant_hits == 2);
}

TEST_CASE("prefix index: the least recently used unused block is evicted first") {
  PrefixIndex index;
  const auto old = cache(index, kAlice, numbered(8), block(0));
  const auto running = cache(index, kAlice, numbered(8, 100), block(10));
  const auto fresh = cache(index, kAlice, numbered(8, 200), block(20));
  index.take(running, kAlice, 2);
  CHECK(index.unused() == 4);
  CHECK(index.evict(1) == std::vector{block(1)});  // the end of the oldest chain
  CHECK(match(index, kAlice, numbered(9)).size() == 1);
  CHECK(index.evict(9) == std::vector{block(0), block(21), block(20)});
  CHECK(index.counters().evictions == 4);
  CHECK(index.evict(1).empty());
  CHECK(match(index, kAlice, numbered(9, 100)) == running);
  index.release(running);
  CHECK(index.evict(9) == std::vector{block(11), block(10)});
  CHECK(index.size() == 0);
}

TEST_CASE("prefix index: a text that is cached already keeps its block") {
  PrefixIndex index;
  const auto chain = cache(index, kAlice, numbered(4), block(0));
  const Text text = numbered(4);
  CHECK_FALSE(index.add({}, {&kAlice, text}, block(7)));
  CHECK(index.add_or_take({}, {&kAlice, text}, block(7)) == chain[0]);
  CHECK(index.block(chain[0]) == block(0));
  CHECK(index.references(chain[0]) == 1);
}

TEST_CASE("prefix index: evicting an extent evicts what follows its blocks elsewhere") {
  PrefixIndex index;
  const auto chain = cache(index, kAlice, numbered(8), block(0, 1));
  const Text more = numbered(4, 8);
  index.take(chain, kAlice, 2);
  const auto tail = index.add(chain[1], {&kAlice, more}, block(0, 2));
  REQUIRE(tail);
  index.release(std::vector{chain[0], chain[1], *tail});
  CHECK(index.unused_by_extent() ==
        std::map<ExtentId, std::uint32_t>{{ExtentId{1}, 2}, {ExtentId{2}, 1}});
  SECTION("the last one") {
    CHECK(index.evict_extent(ExtentId{2}) == std::vector{block(0, 2)});
    CHECK(match(index, kAlice, numbered(13)) == chain);
  }
  SECTION("the first ones") {
    CHECK(index.evict_extent(ExtentId{1}).size() == 3);
    CHECK(index.size() == 0);
  }
}

TEST_CASE("prefix index: a forgotten block is not found, and nothing is added after it") {
  PrefixIndex index;
  const Text text = numbered(12);
  const auto chain = cache(index, kAlice, text, block(0));
  index.take(chain, kAlice, 3);
  index.forget(chain[1]);
  CHECK(match(index, kAlice, numbered(13)) == std::vector{chain[0]});
  const Text more = numbered(4, 12);
  CHECK_FALSE(index.add(chain[2], {&kAlice, more}, block(3)));
  CHECK(cache(index, kAlice, text, block(10)).size() == 3);  // the text can be cached again
  index.release(chain);
  CHECK(index.evict(9).size() == 5);
  CHECK(index.size() == 0);
}

TEST_CASE("prefix index: over random calls no referenced block is evicted, and none is lost") {
  SeededRandom random(11);
  PrefixIndex index;
  std::vector<std::vector<PrefixId>> held;
  std::set<std::uint32_t> in_index;
  std::uint32_t next_block = 0;
  const auto forget_blocks = [&](const std::vector<BlockId>& blocks) {
    for (const BlockId each : blocks) REQUIRE(in_index.erase(each.index) == 1);
  };
  for (int i = 0; i < 4000; ++i) {
    const std::uint64_t what = random.below(8);
    if (what < 4) {
      Text text;  // few tokens, so that texts share prefixes
      for (std::uint64_t n = random.below(24); n > 0; --n)
        text.push_back(static_cast<TokenId>(random.below(2)));
      auto chain = match(index, kAlice, text);
      index.take(chain, kAlice, text.size() / kBlockTokens);
      for (std::size_t at = chain.size() * kBlockTokens; at + kBlockTokens <= text.size();
           at += kBlockTokens) {
        const auto added = index.add_or_take(chain.empty() ? PrefixId{} : chain.back(),
                                             {&kAlice, std::span(text).subspan(at, kBlockTokens)},
                                             block(next_block, 1 + random.below(3)));
        if (!added) break;
        if (index.block(*added).index == next_block) in_index.insert(next_block++);
        chain.push_back(*added);
      }
      held.push_back(std::move(chain));
    } else if (what < 6 && !held.empty()) {
      const auto which = held.begin() + static_cast<std::ptrdiff_t>(random.below(held.size()));
      index.release(*which);
      held.erase(which);
    } else if (what == 6) {
      forget_blocks(index.evict(static_cast<std::uint32_t>(random.below(4))));
    } else {
      if (random.below(4) == 0) forget_blocks(index.evict_extent(ExtentId{1 + random.below(3)}));
    }
    std::map<PrefixId, std::uint32_t> references;
    for (const auto& chain : held) {
      for (const PrefixId id : chain) ++references[id];
    }
    REQUIRE(index.size() == in_index.size());
    REQUIRE(index.unused() == index.size() - references.size());
    for (const auto& [id, count] : references) REQUIRE(index.references(id) == count);
  }
  REQUIRE(index.counters().evictions > 100);
}

TEST_CASE("prefix index: the users of a chain leave once, with its first block and not before") {
  PrefixIndex index;
  const auto chain = cache(index, kAlice, numbered(12), block(0));
  const auto other = cache(index, kAlice, numbered(12, 500), block(10, 2));
  index.add_user(chain[0], {"one"});
  index.add_user(chain[0], {"two"});
  index.add_user(other[0], {"three"});
  SECTION("evicted") {
    index.evict(2);
    CHECK(index.take_gone_users().empty());
    index.evict(1);
    CHECK(index.take_gone_users() == Ids{{"one"}, {"two"}});
    index.evict(3);
    CHECK(index.take_gone_users() == Ids{{"three"}});
  }
  SECTION("reclaimed") {
    index.evict_extent(ExtentId{2});
    CHECK(index.take_gone_users() == Ids{{"three"}});
  }
  SECTION("forgotten: a later user leaves at once, and the eviction reports nothing") {
    index.forget(chain[1]);
    CHECK(index.take_gone_users().empty());
    index.forget(chain[0]);
    CHECK(index.take_gone_users() == Ids{{"one"}, {"two"}});
    index.add_user(chain[0], {"late"});
    CHECK(index.take_gone_users() == Ids{{"late"}});
    index.evict(6);
    CHECK(index.take_gone_users() == Ids{{"three"}});
  }
  SECTION("dropped with the lease") {
    index.drop_users();
    CHECK(index.take_gone_users().size() == 3);
  }
  index.evict(6);
  index.take_gone_users();
  index.drop_users();
  CHECK(index.take_gone_users().empty());
}

TEST_CASE("prefix index: a request that uses a chain again and again is one user") {
  PrefixIndex index;
  const auto chain = cache(index, kAlice, numbered(4), block(0));
  index.add_user(chain[0], {"other"});
  index.add_user(chain[0], {"preempted"});
  CHECK(index.take_gone_users().empty());
  for (std::size_t i = 0; i < PrefixIndex::kMaxUsers; ++i) {
    index.add_user(chain[0], {"preempted"});
    REQUIRE(index.take_gone_users() == Ids{{"preempted"}});
  }
  index.evict(1);
  CHECK(index.take_gone_users() == Ids{{"other"}, {"preempted"}});
}

TEST_CASE("prefix index: beyond its bound of users the first of the oldest chain leaves early") {
  PrefixIndex index;
  const auto old = cache(index, kAlice, numbered(4), block(0));
  const auto young = cache(index, kAlice, numbered(4, 500), block(1));
  index.add_user(young[0], {"young"});
  for (std::size_t i = 1; i < PrefixIndex::kMaxUsers; ++i)
    index.add_user(old[0], {"old" + std::to_string(i)});
  CHECK(index.take_gone_users().empty());
  index.add_user(young[0], {"one more"});
  CHECK(index.take_gone_users() == Ids{{"old1"}});
}

TEST_CASE("prefix index: a match brought up to date equals a match from the start") {
  PrefixIndex index;
  SeededRandom random(5);
  const Text text = numbered(41);
  PrefixMatch waiting;
  std::uint32_t next_block = 0;
  std::set<std::size_t> lengths;
  for (int i = 0; i < 3000; ++i) {
    const std::uint64_t what = random.below(8);
    const auto length = static_cast<std::size_t>(random.below(text.size()));
    if (what < 3)
      cache(index, kAlice, Text(text.begin(), text.begin() + length), block(next_block));
    if (what < 3) next_block += 20;
    if (what == 3) index.evict(static_cast<std::uint32_t>(1 + random.below(6)));
    const auto now = match(index, kAlice, text);
    if (what == 4 && !now.empty()) index.forget(now[random.below(now.size())]);
    index.match_again(waiting, {&kAlice, text}, kBlockTokens);
    REQUIRE(waiting.chain == match(index, kAlice, text));
    lengths.insert(waiting.chain.size());
  }
  CHECK(lengths.size() > 5);
}

}  // namespace leasehold
