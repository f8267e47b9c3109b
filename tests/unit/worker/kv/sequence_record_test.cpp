#include "worker/kv/sequence_record.hpp"

#include <catch2/catch.hpp>
#include <cstring>

#include "kernels/host_backend.hpp"
#include "tests/support/leased_memory.hpp"
#include "worker/kv/block_table.hpp"
#include "worker/kv/record_layout.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kContext = 128;
constexpr std::size_t kNumberInSlot = offsetof(RecordSlot, number);
// Other processes read records: a new layout needs a new kRecordVersion.
static_assert(kSlotsOffset == 448 && kNumberInSlot == 40);

SamplingParams sampling() {
  return {.temperature = 0.5f,
          .seed = 99,
          .ignore_eos = true,
          .min_tokens = 12,
          .includes_stop = true,
          .top_k = 40,
          .top_p = 0.9f,
          .min_p = 0.05f,
          .typical_p = 0.8f,
          .repetition_penalty = 1.1f,
          .presence_penalty = -0.5f,
          .frequency_penalty = 0.25f,
          .penalty_window = 64,
          .top_logprobs = 0,
          .logit_bias = {{3, -100.0f}},
          .stop_tokens = {4},
          .stop = {"END", std::string(100, 's')}};
}

const RequestId kRequestId{"acme/" + std::string(64, 'r')};
const std::vector<TokenId> kPrompt{5, 6, 7};

/// A sequence that writes its record into blocks of `block_bytes`, as commits of an engine would.
struct Recorded {
  explicit Recorded(std::size_t block_bytes = 4096) : memory(blocks(block_bytes) * block_bytes) {
    pool.add_extent(ExtentId{42}, 64);
    parts.block_size_bytes = block_bytes;
    for (std::size_t i = 0; i < blocks(block_bytes); ++i) {
      parts.blocks.push_back(memory.at(i * block_bytes));
      own_blocks.push_back({ExtentId{43}, static_cast<std::uint32_t>(100 + i)});
    }
  }
  static std::size_t blocks(std::size_t block_bytes) {
    return record_block_count({kContext}, block_bytes) + list_block_count(sampling(), block_bytes);
  }

  void commit(std::uint32_t n_rows, const std::vector<TokenId>& next) {
    REQUIRE(table.reserve(table.committed() + n_rows, pool));
    FakeTable open;
    const auto set = open.step(1);
    open.gate().run(*set, {LaunchSite::Commit, 0, Touches::TenantMemory},
                    [&](const LaunchPermit& permit) {
                      RecordPieces pieces;
                      commit_record(pieces, parts, {kContext}, next_commit(n_rows, next), progress);
                      write_on_host(permit, pieces.pieces());
                    });
    table.commit(table.committed() + n_rows);
    ++commits;
    tokens.insert(tokens.end(), next.begin(), next.end());
  }

  RecordCommit next_commit(std::uint32_t n_rows, std::span<const TokenId> next) const {
    return {.engine_request_id = &kRequestId,
            .sampling = &params,
            .adapter = adapter ? &*adapter : nullptr,
            .max_emitted_tokens = 40,
            .prompt_tokens = 3,
            .committed = table.committed() + n_rows,
            .tokens = tokens,
            .next = next,
            .blocks = table.blocks(),
            .own_blocks = own_blocks,
            .state_blocks = state_blocks,
            .state_copy = state_blocks.empty() ? std::nullopt : std::optional(commits % 2)};
  }

  /// Begins another sequence in the same memory.
  void start_over() {
    tokens = kPrompt;
    table = BlockTable(16);
    progress = {};
  }

  std::vector<std::byte> bytes() const {
    const std::byte* from = memory.bytes();
    return {from, from + parts.blocks.size() * parts.block_size_bytes};
  }

  SamplingParams params = sampling();
  std::optional<ContentDigest> adapter;
  std::vector<TokenId> tokens = kPrompt;
  BlockPool pool;
  BlockTable table{16};
  RecordProgress progress;
  LeasedMemory memory;
  RecordMemory parts;
  std::vector<BlockId> own_blocks;  // of `parts`
  std::vector<BlockId> state_blocks;
  std::uint32_t commits = 0;
};

/// Three commits: the prompt, then two tokens.
Recorded three_commits(std::size_t block_bytes = 4096) {
  Recorded recorded(block_bytes);
  recorded.commit(3, {10});
  recorded.commit(1, {11});
  recorded.commit(1, {12});
  return recorded;
}

}  // namespace

TEST_CASE("sequence record: reading returns what was committed") {
  const Recorded recorded = three_commits();
  const Result<SequenceRecord> record = read_record(recorded.bytes(), {kContext});
  REQUIRE(record);
  REQUIRE(record->engine_request_id == kRequestId);
  REQUIRE(record->sampling == sampling());
  REQUIRE(record->max_emitted_tokens == 40);
  REQUIRE(record->prompt_tokens == 3);
  REQUIRE(record->committed == 5);
  REQUIRE(record->tokens == std::vector<TokenId>{5, 6, 7, 10, 11, 12});
  REQUIRE(record->blocks == std::vector{BlockId{ExtentId{42}, 0}});
}

TEST_CASE("sequence record: it says which adapter's keys and values its blocks hold") {
  CHECK(read_record(three_commits().bytes(), {kContext})->adapter == std::nullopt);
  Recorded recorded;
  recorded.adapter = ContentDigest{{7, 8, 9}};
  recorded.commit(3, {10});
  CHECK(read_record(recorded.bytes(), {kContext})->adapter == recorded.adapter);
}

TEST_CASE("sequence record: a record may span many small blocks") {
  const Recorded recorded = three_commits(64);
  REQUIRE(recorded.parts.blocks.size() > 10);
  const Result<SequenceRecord> in_pieces = read_record(recorded.bytes(), {kContext});
  REQUIRE(in_pieces);
  REQUIRE(*in_pieces == *read_record(three_commits().bytes(), {kContext}));
}

TEST_CASE("sequence record: a record names the blocks that it lies in, up to twenty") {
  const auto named = [](const Recorded& recorded) {
    const std::vector<std::byte> bytes = recorded.bytes();
    return named_record_blocks(std::span(bytes).first(kRecordHeadBytes),
                               recorded.own_blocks.front(), {kContext},
                               recorded.parts.block_size_bytes);
  };
  const Recorded recorded = three_commits(512);
  REQUIRE(recorded.own_blocks.size() > 2);
  const auto blocks = named(recorded);
  REQUIRE(blocks);
  // The lists have blocks of their own, which are not needed where they fit behind the record.
  REQUIRE(blocks->size() >= recorded.own_blocks.size() - 1);
  REQUIRE(std::equal(blocks->begin(), blocks->end(), recorded.own_blocks.begin()));
  REQUIRE(named(three_commits())->size() == 1);
  const std::vector<std::byte> whole = recorded.bytes();
  REQUIRE(named_record_blocks(whole, {ExtentId{1}, 0}, {kContext}, 32).error().code ==
          Errc::FileCorrupt);
  const std::vector<std::byte> no_record(kRecordHeadBytes);
  REQUIRE(named_record_blocks(no_record, {ExtentId{1}, 0}, {kContext}, 512)->empty());
  std::vector<std::byte> damaged = recorded.bytes();
  damaged[offsetof(RecordHeader, more_blocks)] ^= std::byte{1};
  REQUIRE_FALSE(named_record_blocks(damaged, {ExtentId{1}, 0}, {kContext}, 512));
}

TEST_CASE("sequence record: a torn commit leaves the previous commit readable") {
  Recorded recorded(4096);
  recorded.commit(3, {10});
  recorded.commit(1, {11});
  const std::vector<std::byte> before = recorded.bytes();
  const auto tokens = GENERATE(std::vector<TokenId>{12}, std::vector<TokenId>{12, 13, 14});
  recorded.commit(static_cast<std::uint32_t>(tokens.size()), tokens);
  const std::vector<std::byte> after = recorded.bytes();
  const SequenceRecord older = *read_record(before, {kContext});
  const SequenceRecord newer = *read_record(after, {kContext});
  REQUIRE(newer.tokens.size() == older.tokens.size() + tokens.size());
  REQUIRE(newer.committed == older.committed + tokens.size());
  const std::size_t slot = kSlotsOffset + 3 % 2 * 64;
  // The commit writes the arrays, then the slot byte by byte, its number last.
  for (std::size_t written = 0; written <= kNumberInSlot + 8; ++written) {
    std::vector<std::byte> torn = after;
    std::copy_n(before.begin() + static_cast<long>(slot + written), static_cast<long>(64 - written),
                torn.begin() + static_cast<long>(slot + written));
    const Result<SequenceRecord> record = read_record(torn, {kContext});
    CAPTURE(written);
    REQUIRE(record);
    REQUIRE((*record == older || *record == newer));
    if (written < kNumberInSlot) REQUIRE(*record == older);
  }
}

TEST_CASE("sequence record: without a whole commit a record is FileCorrupt") {
  std::vector<std::byte> torn = three_commits().bytes();
  for (const std::size_t slot : {0, 1}) torn[kSlotsOffset + slot * 64] ^= std::byte{1};
  REQUIRE(read_record(torn, {kContext}).error().code == Errc::FileCorrupt);
}

TEST_CASE("sequence record: every changed byte is detected or harmless") {
  const Recorded recorded = three_commits();
  const std::vector<std::byte> whole = recorded.bytes();
  const SequenceRecord newest = *read_record(whole, {kContext});
  int refused = 0;
  int fell_back = 0;
  const std::size_t size_bytes =
      record_size_bytes({kContext}) + pack_sampling_lists(sampling()).size();
  for (std::size_t at = 0; at < size_bytes; ++at) {
    for (const int bit : {0, 7}) {
      std::vector<std::byte> damaged = whole;
      damaged[at] ^= std::byte{static_cast<unsigned char>(1 << bit)};
      const Result<SequenceRecord> record = read_record(damaged, {kContext});
      CAPTURE(at, bit);
      if (!record) REQUIRE(record.error().code == Errc::FileCorrupt);
      if (!record) ++refused;
      if (!record || *record == newest) continue;
      ++fell_back;  // to the previous commit
      REQUIRE(record->committed == 4);
      REQUIRE(record->tokens == std::vector<TokenId>{5, 6, 7, 10, 11});
    }
  }
  REQUIRE(refused > 100);
  REQUIRE(fell_back > 20);
}

TEST_CASE("sequence record: a header of another model, a short record and zeros are FileCorrupt") {
  const std::vector<std::byte> whole = three_commits().bytes();
  REQUIRE(read_record(whole, {kContext + 16}).error().code == Errc::FileCorrupt);
  REQUIRE(read_record(std::span(whole).first(400), {kContext}).error().code == Errc::FileCorrupt);
  const std::vector<std::byte> zeros(whole.size());
  REQUIRE(read_record(zeros, {kContext}).error().code == Errc::FileCorrupt);
}

TEST_CASE("sequence record: sampling parameters out of range, or lists cut off, are FileCorrupt") {
  const std::vector<std::byte> whole = three_commits().bytes();
  const auto refused = [&](auto spoil) {
    std::vector<std::byte> bytes = whole;
    auto& header = *reinterpret_cast<RecordHeader*>(bytes.data());
    spoil(header);
    header.checksum = header_checksum(header);
    return read_record(bytes, {kContext}).error().code == Errc::FileCorrupt;
  };
  REQUIRE(refused([](RecordHeader& header) { header.top_p = 2.0f; }));
  REQUIRE(refused([](RecordHeader& header) { header.temperature = -1.0f; }));
  REQUIRE(refused([](RecordHeader& header) { header.lists_bytes = UINT32_MAX; }));
  REQUIRE(refused([](RecordHeader& header) { --header.lists_bytes; }));
  const std::size_t size_bytes =
      record_size_bytes({kContext}) + pack_sampling_lists(sampling()).size();
  REQUIRE(read_record(std::span(whole).first(size_bytes), {kContext}));
  REQUIRE(read_record(std::span(whole).first(size_bytes - 1), {kContext}).error().code ==
          Errc::FileCorrupt);
}

namespace {

const std::vector<BlockId> kFirstCopy{{ExtentId{42}, 7}, {ExtentId{42}, 8}};
const std::vector<BlockId> kSecondCopy{{ExtentId{42}, 9}, {ExtentId{44}, 1}};

Recorded with_state(int commits) {
  Recorded recorded;
  recorded.state_blocks = kFirstCopy;
  recorded.state_blocks.insert(recorded.state_blocks.end(), kSecondCopy.begin(), kSecondCopy.end());
  for (int i = 0; i < commits; ++i) recorded.commit(i == 0 ? 3 : 1, {10 + i});
  return recorded;
}

std::vector<BlockId> state_of(const std::vector<std::byte>& bytes) {
  return read_record(bytes, {kContext}).value().state;
}

}  // namespace

TEST_CASE("sequence record: it names the copy of the state that its last commit wrote") {
  CHECK(state_of(with_state(1).bytes()) == kFirstCopy);
  CHECK(state_of(with_state(2).bytes()) == kSecondCopy);
  CHECK(state_of(with_state(3).bytes()) == kFirstCopy);
  CHECK(state_of(three_commits().bytes()).empty());
}

TEST_CASE("sequence record: after a damaged commit no state is used, since it may be overwritten") {
  const int commits = GENERATE(2, 3);
  const int slot = GENERATE(0, 1);
  std::vector<std::byte> bytes = with_state(commits).bytes();
  bytes[static_cast<std::size_t>(kSlotsOffset + slot * kCacheLineBytes)] ^= std::byte{1};
  const Result<SequenceRecord> record = read_record(bytes, {kContext});
  REQUIRE(record);
  CHECK(record->state.empty());
  CHECK(record->committed > 0);
}

namespace {

constexpr RecordShape kTwoGroups{.max_context = kContext, .n_groups = 3};

/// The bytes of a record with blocks of two groups with a window after `commits` commits of 40 and
/// then 20 positions each. Block i has the window blocks {50, 2i} and {50, 2i + 1}.
std::vector<std::byte> with_windows(int commits, std::uint32_t first_window) {
  Recorded recorded;
  std::vector<BlockId> blocks;
  std::vector<BlockId> windows;
  for (std::uint32_t i = 0; i < kContext / 16; ++i) {
    blocks.push_back({ExtentId{42}, i});
    if (i >= first_window)
      windows.insert(windows.end(), {{ExtentId{50}, 2 * i}, {ExtentId{50}, 2 * i + 1}});
  }
  const std::vector<TokenId> tokens(kContext, 3);
  const RequestId id{"t/r"};
  RecordProgress progress;
  FakeTable open;
  const auto set = open.step(1);
  for (int i = 0; i < commits; ++i) {
    const auto committed = static_cast<std::uint32_t>(40 + 20 * i);
    const SamplingParams greedy{};
    const RecordCommit commit{.engine_request_id = &id,
                              .sampling = &greedy,
                              .max_emitted_tokens = 9,
                              .prompt_tokens = 3,
                              .committed = committed,
                              .tokens = std::span(tokens).first(committed),
                              .next = {},
                              .blocks = std::span(blocks).first((committed + 15) / 16),
                              .windows = windows,
                              .first_window = first_window,
                              .own_blocks = recorded.own_blocks,
                              .state_blocks = {}};
    open.gate().run(*set, {LaunchSite::Commit, 0, Touches::TenantMemory},
                    [&](const LaunchPermit& permit) {
                      RecordPieces pieces;
                      commit_record(pieces, recorded.parts, kTwoGroups, commit, progress);
                      write_on_host(permit, pieces.pieces());
                    });
  }
  return recorded.bytes();
}

}  // namespace

TEST_CASE("sequence record: it lists the blocks of every group of layers") {
  const std::uint32_t first = GENERATE(0u, 2u);
  const SequenceRecord record = read_record(with_windows(3, first), kTwoGroups).value();
  REQUIRE(record.committed == 80);
  REQUIRE(record.blocks.size() == 5);
  REQUIRE(record.windows.size() == 10);
  for (std::uint32_t i = first; i < 5; ++i) {
    CHECK(record.blocks[i] == BlockId{ExtentId{42}, i});
    CHECK(record.windows[2 * i + 1] == BlockId{ExtentId{50}, 2 * i + 1});
  }
  CHECK(read_record(with_windows(3, first), {kContext}).error().code == Errc::FileCorrupt);
}

TEST_CASE(
    "sequence record: after a damaged commit no window is used, since it may be overwritten") {
  const int slot = GENERATE(0, 1);
  std::vector<std::byte> bytes = with_windows(3, 0);
  bytes[static_cast<std::size_t>(kSlotsOffset + slot * kCacheLineBytes)] ^= std::byte{1};
  const Result<SequenceRecord> record = read_record(bytes, kTwoGroups);
  REQUIRE(record);
  CHECK(record->windows.empty());
  CHECK_FALSE(record->blocks.empty());
}

TEST_CASE("sequence record: damaged blocks of a state are detected") {
  std::vector<std::byte> bytes = with_state(2).bytes();
  const std::size_t at = record_size_bytes({kContext}) + pack_sampling_lists(sampling()).size();
  REQUIRE(read_record(bytes, {kContext}));
  bytes[at + 8] ^= std::byte{1};
  CHECK(read_record(bytes, {kContext}).error().code == Errc::FileCorrupt);
}

TEST_CASE("sequence record: commits of an earlier record are invalid under a new header") {
  Recorded recorded = three_commits();
  recorded.start_over();
  recorded.commit(3, {77});
  const Result<SequenceRecord> record = read_record(recorded.bytes(), {kContext});
  REQUIRE(record);
  REQUIRE(record->tokens == std::vector<TokenId>{5, 6, 7, 77});
}

}  // namespace leasehold::testing
