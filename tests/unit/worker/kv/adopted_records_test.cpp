// What records found in adopted memory add to a lease. Each check of untrusted content alone.
#include "worker/kv/adopted_records.hpp"

#include <catch2/catch.hpp>
#include <numeric>

namespace leasehold {
namespace {

constexpr std::uint32_t kPerBlock = 4;
constexpr std::uint32_t kVocab = 100;
constexpr ExtentId kExtent{7};

std::vector<TokenId> text(std::uint32_t count, TokenId first = 1) {
  std::vector<TokenId> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

/// Ten tokens, nine of them committed, in blocks 0 to 2.
SequenceRecord record(std::vector<std::uint32_t> blocks = {0, 1, 2}, TokenId first = 1) {
  SequenceRecord made{.engine_request_id = {"a/r"}, .prompt_tokens = 3, .committed = 9};
  made.tokens = text(10, first);
  for (const std::uint32_t block : blocks) made.blocks.push_back({kExtent, block});
  return made;
}

struct Lease {
  Lease() { pool.add_extent(kExtent, 16); }
  Result<void> add(SequenceRecord found, std::vector<std::uint32_t> own = {10}) {
    std::vector<BlockId> own_blocks;
    for (const std::uint32_t block : own) own_blocks.push_back({kExtent, block});
    return records.add(std::move(found), own_blocks, pool);
  }
  std::uint32_t cache() { return records.cache(owner, pool, index); }
  std::size_t matched(const std::vector<TokenId>& tokens) const {
    return index.match({&owner, tokens}, kPerBlock).size();
  }

  /// As the scheduler takes it for a request with these tokens.
  std::optional<PrefixIndex::End> take_tail(const std::vector<TokenId>& tokens) {
    const auto chain = index.match({&owner, tokens}, kPerBlock);
    const auto rest = std::span(tokens).first(tokens.size() - 1).subspan(chain.size() * kPerBlock);
    return index.take_tail(chain.empty() ? PrefixId{} : chain.back(), {&owner, rest});
  }

  TenantId owner{"a"};
  BlockPool pool;
  PrefixIndex index;
  AdoptedRecords records{{.tokens_per_block = kPerBlock, .n_vocab = kVocab}};
};

}  // namespace

TEST_CASE("adopted records: blocks of committed positions are cached, and others are free") {
  Lease lease;
  REQUIRE(lease.add(record({0, 1, 2, 3})));

  CHECK(lease.cache() == 3);

  CHECK(lease.matched(text(10)) == 2);
  CHECK(lease.index.unused() == 3);
  CHECK(lease.pool.held_blocks() == 3);
  CHECK(lease.pool.holds({kExtent, 2}));        // one of its positions is committed
  CHECK_FALSE(lease.pool.holds({kExtent, 3}));  // none is
}

namespace {

/// A lease of a model whose state has two blocks.
struct LeaseWithState : Lease {
  LeaseWithState() {
    records = AdoptedRecords({.tokens_per_block = kPerBlock, .state_blocks = 2, .n_vocab = kVocab});
  }
  static SequenceRecord record_with_state(std::vector<std::uint32_t> state) {
    SequenceRecord made = record();
    for (const std::uint32_t block : state) made.state.push_back({kExtent, block});
    return made;
  }
};

}  // namespace

TEST_CASE("adopted records: an end has the state of its last position, for one request") {
  LeaseWithState lease;
  REQUIRE(lease.add(lease.record_with_state({8, 7})));
  CHECK(lease.cache() == 5);
  CHECK(lease.index.unused() == 5);
  const auto chain = lease.index.match({&lease.owner, text(10)}, kPerBlock);
  const std::vector<TokenId> tokens = text(10);
  const auto end = lease.index.take_tail(
      chain.back(), {&lease.owner, std::span(tokens).subspan(8, 1)}, /*needs_state=*/true);
  REQUIRE(end);
  CHECK(end->positions == 1);
  CHECK((end->state == std::vector<BlockId>{{kExtent, 8}, {kExtent, 7}}));
}

TEST_CASE("adopted records: a record without its state is rejected, and so is a foreign state") {
  LeaseWithState lease;
  CHECK_FALSE(lease.add(lease.record_with_state({})));
  CHECK_FALSE(lease.add(lease.record_with_state({7})));
  CHECK_FALSE(lease.add(lease.record_with_state({7, 99})));  // outside the lease
  CHECK_FALSE(lease.add(lease.record_with_state({7, 7})));
  CHECK_FALSE(lease.add(lease.record_with_state({7, 2})));   // a block of its positions
  CHECK_FALSE(lease.add(lease.record_with_state({7, 10})));  // of the record itself
  REQUIRE(lease.add(lease.record_with_state({7, 8})));
  SequenceRecord other = lease.record_with_state({8, 9});  // of another record
  other.blocks = {{kExtent, 3}, {kExtent, 4}, {kExtent, 5}};
  CHECK_FALSE(lease.add(other, {11}));
  Lease without;
  CHECK_FALSE(without.add(lease.record_with_state({7, 8})));
}

TEST_CASE("adopted records: a request goes on in the last block, once") {
  Lease lease;
  REQUIRE(lease.add(record()));
  lease.cache();
  CHECK_FALSE(lease.take_tail(text(10, 2)));  // another text

  const auto end = lease.take_tail(text(10));

  REQUIRE(end);
  CHECK(end->block == BlockId{kExtent, 2});
  CHECK(end->positions == 1);
  CHECK(end->free.empty());
  CHECK_FALSE(lease.take_tail(text(10)));
  CHECK(lease.index.unused() == 2);
  CHECK(lease.index.counters().evictions == 0);
}

TEST_CASE("adopted records: a request that lacks the last tokens goes on inside the block before") {
  Lease lease;
  REQUIRE(lease.add(record()));
  lease.cache();

  const auto end = lease.take_tail(text(8));  // the eighth is to be computed

  REQUIRE(end);
  CHECK(end->block == BlockId{kExtent, 1});
  CHECK(end->positions == 3);
  CHECK((end->free == std::vector<BlockId>{{kExtent, 2}}));
  CHECK(lease.index.unused() == 1);
}

TEST_CASE("adopted records: a block that other text follows is not taken out of the cache") {
  Lease lease;
  SequenceRecord longer = record({0, 1, 3, 4});
  longer.tokens = text(16);
  std::ranges::fill(longer.tokens.begin() + 8, longer.tokens.end(), 50);
  longer.committed = 15;
  REQUIRE(lease.add(record()));
  REQUIRE(lease.add(longer, {11}));
  lease.cache();

  CHECK_FALSE(lease.take_tail(text(8)));
  CHECK(lease.matched(longer.tokens) == 3);
}

TEST_CASE("adopted records: a block that one record fills is not cached as the end of another") {
  Lease lease;
  SequenceRecord behind = record();
  behind.committed = 5;
  REQUIRE(lease.add(behind));
  REQUIRE(lease.add(record({0, 1, 3}), {11}));

  CHECK(lease.cache() == 3);

  CHECK(lease.pool.held_blocks() == 3);
  CHECK(lease.index.unused() == 3);
}

TEST_CASE("adopted records: a block that two texts begin with is cached once") {
  Lease lease;
  SequenceRecord other = record({0, 3, 4});
  std::ranges::fill(other.tokens.begin() + 4, other.tokens.end(), 50);
  REQUIRE(lease.add(record()));
  REQUIRE(lease.add(other, {11}));

  CHECK(lease.cache() == 5);
  CHECK(lease.matched(other.tokens) == 2);
  CHECK(lease.pool.held_blocks() == 5);
}

TEST_CASE("adopted records: of two blocks with the same text one is cached, the other is free") {
  Lease lease;
  REQUIRE(lease.add(record()));
  REQUIRE(lease.add(record({4, 5, 6}), {11}));

  CHECK(lease.cache() == 3);
  CHECK_FALSE(lease.pool.holds({kExtent, 4}));
  CHECK_FALSE(lease.pool.holds({kExtent, 6}));
}

TEST_CASE("adopted records: the blocks of a text are found only with its adapter") {
  Lease lease;
  const ContentDigest adapter{{1}};
  const ContentDigest other{{2}};
  SequenceRecord made = record();
  made.adapter = adapter;
  REQUIRE(lease.add(std::move(made)));
  CHECK(lease.cache() == 3);
  const auto matched = [&](const ContentDigest* asked) {
    return lease.index.match({&lease.owner, text(10), asked}, kPerBlock).size();
  };
  CHECK(matched(&adapter) == 2);
  CHECK(matched(&other) == 0);
  CHECK(matched(nullptr) == 0);
}

TEST_CASE("adopted records: a block with the same tokens under another adapter is rejected") {
  Lease lease;
  REQUIRE(lease.add(record()));
  SequenceRecord made = record({0, 1, 3});
  made.adapter = ContentDigest{{1}};
  const auto refused = lease.add(std::move(made), {11});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().detail.contains("names a block that another record uses"));
}

TEST_CASE("adopted records: a record that is wrong adds nothing") {
  Lease lease;
  REQUIRE(lease.add(record()));
  const auto refused = [&](SequenceRecord found, std::vector<std::uint32_t> own = {11}) {
    const Result<void> added = lease.add(std::move(found), std::move(own));
    return !added && added.error().code == Errc::FileCorrupt;
  };
  const auto with_token = [](TokenId token) {
    SequenceRecord made = record({4, 5, 6}, 20);
    made.tokens[3] = token;
    return made;
  };
  CHECK(refused(with_token(kVocab)));
  CHECK(refused(with_token(-1)));
  SequenceRecord outside = record({4, 5, 6}, 20);
  outside.blocks[1] = {ExtentId{8}, 5};
  CHECK(refused(outside));
  CHECK(refused(record({4, 5, 16}, 20)));
  CHECK(refused(record({4, 5, 4}, 20)));        // a block twice
  CHECK(refused(record({4, 11, 6}, 20)));       // its own block
  CHECK(refused(record({4, 10, 6}, 20)));       // the other record's own block
  CHECK(refused(record({0, 5, 6}, 20)));        // the other's block, for another text
  CHECK(refused(record({1, 5, 6})));            // the other's block, at another position
  CHECK(refused(record({4, 5, 6}, 20), {10}));  // lies where the other lies
  CHECK(refused(record({4, 5, 6}, 20), {1}));   // lies in the other's block
  CHECK(refused(record({4, 5, 6}, 20), {16}));  // lies outside the lease
  CHECK(refused(record({4, 5, 6}, 20), {9, 9}));
  CHECK(lease.records.size() == 1);
  CHECK(lease.cache() == 3);
  CHECK(lease.add(record({4, 5, 6}, 20), {11}));  // the same record without a fault
}

namespace {

constexpr std::uint32_t kLong = KvLayout::kBlockTokens;  // positions of a block
constexpr KvWindow kTwoWindows{.n_groups = 2, .positions = 20};

/// A lease of a model with two groups of layers that have a window.
struct LeaseWithWindows : Lease {
  LeaseWithWindows() {
    pool.add_extent(ExtentId{8}, 30);
    records = AdoptedRecords({.tokens_per_block = kLong, .window = kTwoWindows, .n_vocab = kVocab});
  }
  /// 71 tokens, 70 of them committed, in blocks 0 to 4. The next full block's row reads blocks 2 to
  /// 4, whose window blocks are {8, 4} to {8, 9}.
  static SequenceRecord windowed() {
    SequenceRecord made = record({0, 1, 2, 3, 4});
    made.tokens = text(71);
    made.committed = 70;
    made.windows.assign(4, BlockId{});
    for (std::uint32_t i = 4; i < 10; ++i) made.windows.push_back({ExtentId{8}, i});
    return made;
  }
};

}  // namespace

TEST_CASE("adopted records: the blocks of a window are cached with the text, and others are free") {
  LeaseWithWindows lease;
  REQUIRE(lease.add(LeaseWithWindows::windowed()));
  CHECK(lease.cache() == 5 + 6);
  CHECK(lease.pool.held_blocks() == lease.index.unused());
  CHECK(lease.pool.holds({ExtentId{8}, 4}));
  CHECK_FALSE(lease.pool.holds({ExtentId{8}, 3}));
  const std::vector<TokenId> tokens = text(71);
  const auto chain = lease.index.match({&lease.owner, tokens}, kLong);
  REQUIRE(chain.size() == 4);
  CHECK(length_with_windows(chain, lease.index.windows(), kTwoWindows) == 4);
  CHECK(length_with_windows(std::span(chain).first(3), lease.index.windows(), kTwoWindows) == 0);
  const OwnedText rest{&lease.owner, std::span(tokens).subspan(64, 6)};
  const auto end = lease.index.take_tail(chain.back(), rest);
  REQUIRE(end);
  CHECK(end->positions == 6);
  CHECK(end->window == std::vector<BlockId>{{ExtentId{8}, 8}, {ExtentId{8}, 9}});
}

TEST_CASE("adopted records: a record whose window is missing or used by others adds nothing") {
  LeaseWithWindows lease;
  const auto refused = [&](auto spoil) {
    SequenceRecord made = LeaseWithWindows::windowed();
    spoil(made);
    const Result<void> added = lease.add(std::move(made));
    return !added && added.error().code == Errc::FileCorrupt;
  };
  CHECK(refused([](SequenceRecord& made) { made.windows.clear(); }));
  CHECK(refused([](SequenceRecord& made) { made.windows.pop_back(); }));
  CHECK(refused([](SequenceRecord& made) { made.windows[4] = {ExtentId{8}, 30}; }));
  CHECK(refused([](SequenceRecord& made) { made.windows[4] = made.windows[5]; }));
  CHECK(refused([](SequenceRecord& made) { made.windows[4] = {kExtent, 1}; }));
  CHECK(refused([](SequenceRecord& made) { made.windows[4] = {kExtent, 10}; }));
  REQUIRE(lease.add(LeaseWithWindows::windowed()));
  // The same text in other blocks, but with the first record's block of another group.
  SequenceRecord other = LeaseWithWindows::windowed();
  for (BlockId& block : other.blocks) block.index += 5;
  std::swap(other.windows[4], other.windows[5]);
  CHECK_FALSE(lease.add(other, {15}));
  CHECK(lease.cache() == 11);
}

TEST_CASE("adopted records: a part of a text does not take the window of the whole text") {
  LeaseWithWindows lease;
  SequenceRecord whole = LeaseWithWindows::windowed();
  whole.tokens = text(81);
  whole.committed = 80;
  REQUIRE(lease.add(whole));
  SequenceRecord part = LeaseWithWindows::windowed();
  part.tokens = text(81);
  for (BlockId& block : part.blocks) block.index += 5;
  REQUIRE(lease.add(part, {15}));
  lease.cache();
  CHECK(lease.pool.held_blocks() == lease.index.unused());
}

}  // namespace leasehold
