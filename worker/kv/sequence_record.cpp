#include "worker/kv/sequence_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "common/expects.hpp"
#include "worker/kv/record_layout.hpp"

namespace leasehold {
namespace {

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

std::uint64_t packed(BlockId block) {
  return block.extent.value << kBlockIndexBits | block.index;
}

std::vector<std::uint64_t> packed(std::span<const BlockId> blocks) {
  std::vector<std::uint64_t> all;
  for (const BlockId block : blocks) all.push_back(packed(block));
  return all;
}

BlockId unpacked(std::uint64_t block) {
  return {ExtentId{block >> kBlockIndexBits},
          static_cast<std::uint32_t>(block & ((1u << kBlockIndexBits) - 1))};
}

}  // namespace

Result<void> check_record_block_size(std::uint64_t block_size_bytes) {
  if (block_size_bytes >= kTokensOffset && block_size_bytes % kCacheLineBytes == 0) return {};
  return fail(
      Errc::UnsupportedModel,
      fmt::format("a KV block of {} bytes cannot hold a sequence record: at least {} bytes and "
                  "a multiple of {} are needed",
                  block_size_bytes, kTokensOffset, kCacheLineBytes));
}

std::uint32_t list_block_count(const SamplingParams& sampling, std::uint64_t block_size_bytes) {
  const std::size_t bytes = sampling_lists_bytes(sampling);
  return bytes == 0 ? 0 : blocks_for_bytes(bytes, block_size_bytes);
}

void RecordPieces::clear() {
  pieces_.clear();
  bytes_.clear();
}

void RecordPieces::add(const RecordMemory& memory, std::uint64_t offset,
                       std::span<const std::byte> bytes, bool is_last) {
  while (!bytes.empty()) {
    const std::uint64_t block = offset / memory.block_size_bytes;
    const std::uint64_t in_block = offset % memory.block_size_bytes;
    expects(block < memory.blocks.size(), "a record fits its blocks");
    const auto n = std::min<std::size_t>(bytes.size(), memory.block_size_bytes - in_block);
    pieces_.push_back({.to = memory.blocks[block] + static_cast<std::ptrdiff_t>(in_block),
                       .bytes = bytes.first(n),
                       .is_last = is_last});
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n));
    bytes = bytes.subspan(n);
    offset += n;
  }
}

std::span<const LeasedPiece> RecordPieces::pieces() {
  const std::byte* at = bytes_.data();
  for (LeasedPiece& piece : pieces_) {
    piece.bytes = {at, piece.bytes.size()};
    at += piece.bytes.size();
  }
  return pieces_;
}

namespace {

void set_sampling(RecordHeader& header, const SamplingParams& sampling) {
  header.seed = sampling.seed;
  header.temperature = sampling.temperature;
  header.flags = static_cast<std::uint8_t>((sampling.ignore_eos ? kIgnoresEos : 0) |
                                           (sampling.includes_stop ? kIncludesStop : 0));
  header.min_tokens = sampling.min_tokens;
  header.top_k = sampling.top_k;
  header.top_p = sampling.top_p;
  header.min_p = sampling.min_p;
  header.typical_p = sampling.typical_p;
  header.repetition_penalty = sampling.repetition_penalty;
  header.presence_penalty = sampling.presence_penalty;
  header.frequency_penalty = sampling.frequency_penalty;
  header.penalty_window = sampling.penalty_window;
  header.top_logprobs = sampling.top_logprobs.value_or(kNoLogprobs);
}

/// Adds the data that belongs to the header, and returns the header without adding it.
RecordHeader make_header(RecordPieces& pieces, const RecordMemory& memory,
                         const RecordCommit& commit, const RecordShape& shape) {
  const std::vector<std::byte> lists = pack_sampling_lists(*commit.sampling);
  const std::vector<std::uint64_t> state = packed(commit.state_blocks);
  RecordHeader header{};
  header.magic = kRecordMagic;
  header.version = kRecordVersion;
  header.max_context = shape.max_context;
  header.n_groups = static_cast<std::uint8_t>(shape.n_groups);
  commit.engine_request_id->value.copy(header.request, sizeof(header.request));
  header.prompt_tokens = commit.prompt_tokens;
  header.max_emitted_tokens = commit.max_emitted_tokens;
  set_sampling(header, *commit.sampling);
  if (commit.adapter != nullptr) std::ranges::copy(commit.adapter->bytes, header.adapter);
  header.lists_bytes = static_cast<std::uint32_t>(lists.size());
  header.state_blocks = static_cast<std::uint16_t>(state.size() / kStateCopies);
  expects(header.state_blocks * kStateCopies == state.size(), "a record counts its state blocks");
  Checksum lists_checksum;
  lists_checksum.add(lists.data(), lists.size());
  lists_checksum.add(state.data(), state.size() * sizeof(std::uint64_t));
  header.lists_checksum = lists_checksum.value;
  for (std::size_t i = 1; i < commit.own_blocks.size() && i < kNamedRecordBlocks; ++i)
    header.more_blocks[i - 1] = packed(commit.own_blocks[i]);
  header.checksum = header_checksum(header);
  pieces.add(memory, record_size_bytes(shape), lists);
  pieces.add(memory, record_size_bytes(shape) + lists.size(), std::as_bytes(std::span(state)));
  // Clears slot 0, so that no commit of an earlier record is valid under the new header.
  constexpr std::array<std::byte, kCacheLineBytes> kNoSlot{};
  pieces.add(memory, kSlotsOffset, kNoSlot);
  return header;
}

/// The blocks of all groups that a record does not hold yet, as it stores them. Blocks of layers
/// with a window that the sequence no longer has are zero.
std::vector<std::uint64_t> new_blocks(const RecordCommit& commit, const RecordShape& shape,
                                      std::uint32_t recorded) {
  std::vector<std::uint64_t> blocks;
  const std::uint32_t n_windows = shape.n_groups - 1;
  for (std::uint32_t i = recorded; i < commit.blocks.size(); ++i) {
    blocks.push_back(packed(commit.blocks[i]));
    for (std::uint32_t group = 0; group < n_windows; ++group) {
      const bool is_held = i >= commit.first_window;
      const std::size_t at = std::size_t{i - commit.first_window} * n_windows + group;
      blocks.push_back(is_held ? packed(commit.windows[at]) : 0);
    }
  }
  return blocks;
}

/// Appends the tokens and blocks that the record does not hold yet.
void append_new(RecordPieces& pieces, const RecordMemory& memory, const RecordShape& shape,
                const RecordCommit& commit, RecordProgress& progress) {
  const auto tokens = commit.tokens.subspan(progress.tokens);
  pieces.add(memory, kTokensOffset + progress.tokens * sizeof(TokenId), std::as_bytes(tokens));
  progress.tokens_checksum.add(tokens.data(), tokens.size_bytes());
  progress.tokens = static_cast<std::uint32_t>(commit.tokens.size());
  const std::vector<std::uint64_t> blocks = new_blocks(commit, shape, progress.blocks);
  pieces.add(memory, shape.blocks_offset() + shape.blocks_bytes(progress.blocks),
             std::as_bytes(std::span(blocks)));
  progress.blocks_checksum.add(blocks.data(), blocks.size() * sizeof(std::uint64_t));
  progress.blocks = static_cast<std::uint32_t>(commit.blocks.size());
}

}  // namespace

void commit_record(RecordPieces& pieces, const RecordMemory& memory, const RecordShape& shape,
                   const RecordCommit& commit, RecordProgress& progress) {
  std::optional<RecordHeader> header;
  if (progress.number == 0) header = make_header(pieces, memory, commit, shape);
  append_new(pieces, memory, shape, commit, progress);
  const auto known = static_cast<std::uint32_t>(commit.tokens.size());
  const std::size_t room = shape.max_context - std::min(known, shape.max_context);
  const std::span<const TokenId> next = commit.next.first(std::min(commit.next.size(), room));
  Checksum tokens_checksum = progress.tokens_checksum;
  pieces.add(memory, kTokensOffset + known * sizeof(TokenId), std::as_bytes(next));
  tokens_checksum.add(next.data(), next.size_bytes());
  RecordSlot slot{.checksum = 0,
                  .tokens_checksum = tokens_checksum.value,
                  .blocks_checksum = progress.blocks_checksum.value,
                  .committed = commit.committed,
                  .tokens = known + static_cast<std::uint32_t>(next.size()),
                  .blocks = progress.blocks,
                  .state_copy = commit.state_copy ? 1 + *commit.state_copy : 0,
                  .number = ++progress.number};
  slot.checksum = slot_checksum(slot);
  constexpr std::size_t kNumber = offsetof(RecordSlot, number);
  const std::uint64_t at = kSlotsOffset + slot.number % 2 * kCacheLineBytes;
  pieces.add(memory, at, bytes_of(slot).first(kNumber));
  // The header follows the slot, because an earlier record's commit in the slot would otherwise be
  // valid under this header.
  if (header) pieces.add(memory, 0, bytes_of(*header));
  pieces.add(memory, at + kNumber, bytes_of(slot.number), true);
}

namespace {

RecordShape shape_of(const RecordHeader& header) {
  return {.max_context = header.max_context, .n_groups = header.n_groups};
}

Result<RecordHeader> read_header(std::span<const std::byte> bytes, const RecordShape& shape) {
  RecordHeader header{};
  expects(bytes.size() >= sizeof(header), "a header is read from enough bytes");
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.magic != kRecordMagic || header.version != kRecordVersion ||
      header.checksum != header_checksum(header) || shape_of(header) != shape) {
    return fail(Errc::FileCorrupt,
                "the header of a sequence record is damaged or has another format");
  }
  return header;
}

/// Errors: FileCorrupt, also for a value outside its range.
Result<SamplingParams> read_sampling(const RecordHeader& header, std::span<const std::byte> bytes) {
  const std::uint64_t offset = record_size_bytes(shape_of(header));
  const std::uint64_t state_bytes = record_state_bytes(header.state_blocks);
  if (header.lists_bytes > kMaxSamplingListsBytes ||
      header.lists_bytes + state_bytes > bytes.size() - offset) {
    return fail(Errc::FileCorrupt, fmt::format("a sequence record of {} bytes claims {} bytes of "
                                               "sampling lists and {} of a state's blocks",
                                               bytes.size(), header.lists_bytes, state_bytes));
  }
  const std::span<const std::byte> lists = bytes.subspan(offset, header.lists_bytes);
  if (Checksum::of(bytes.data() + offset, lists.size() + state_bytes) != header.lists_checksum)
    return fail(Errc::FileCorrupt, "the sampling lists of a sequence record are damaged");
  SamplingParams sampling{.temperature = header.temperature,
                          .seed = header.seed,
                          .ignore_eos = (header.flags & kIgnoresEos) != 0,
                          .min_tokens = header.min_tokens,
                          .includes_stop = (header.flags & kIncludesStop) != 0,
                          .top_k = header.top_k,
                          .top_p = header.top_p,
                          .min_p = header.min_p,
                          .typical_p = header.typical_p,
                          .repetition_penalty = header.repetition_penalty,
                          .presence_penalty = header.presence_penalty,
                          .frequency_penalty = header.frequency_penalty,
                          .penalty_window = header.penalty_window};
  if (header.top_logprobs != kNoLogprobs) sampling.top_logprobs = header.top_logprobs;
  TRY(unpack_sampling_lists(lists, sampling));
  if (const Result<void> checked = check_sampling(sampling); !checked) {
    return fail(Errc::FileCorrupt, "in a sequence record: " + checked.error().detail);
  }
  return sampling;
}

bool has_plausible_counts(const RecordSlot& slot, const RecordHeader& header) {
  return slot.number > 0 && slot.checksum == slot_checksum(slot) &&
         slot.tokens <= header.max_context && slot.committed <= slot.tokens &&
         header.prompt_tokens > 0 && header.prompt_tokens <= slot.tokens &&
         slot.blocks <= shape_of(header).max_blocks() &&
         slot.committed <= slot.blocks * KvLayout::kBlockTokens &&
         slot.state_copy <= (header.state_blocks > 0 ? kStateCopies : 0);
}

bool is_valid(const RecordSlot& slot, const RecordHeader& header,
              std::span<const std::byte> bytes) {
  if (!has_plausible_counts(slot, header)) return false;
  const std::byte* tokens = bytes.data() + kTokensOffset;
  const RecordShape shape = shape_of(header);
  const std::byte* blocks = bytes.data() + shape.blocks_offset();
  return slot.tokens_checksum == Checksum::of(tokens, slot.tokens * sizeof(TokenId)) &&
         slot.blocks_checksum == Checksum::of(blocks, shape.blocks_bytes(slot.blocks));
}

/// An engine_request_id is an id, optionally preceded by a tenant and a slash
/// (worker/kv/request_ids.hpp).
bool is_engine_request_id(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return RequestId::parse(text).has_value();
  return TenantId::parse(text.substr(0, slash)) && RequestId::parse(text.substr(slash + 1));
}

/// The slot that a reader uses.
struct NewestSlot {
  RecordSlot slot;
  bool is_certain = false;  ///< No later commit was lost.
};

/// The valid slot with the higher number. It is certainly the last commit if the other slot holds
/// the one before it, or is cleared because there is none.
std::optional<NewestSlot> newest_slot(std::span<const std::byte> bytes,
                                      const RecordHeader& header) {
  std::optional<RecordSlot> newest;
  std::optional<RecordSlot> older;
  bool has_cleared = false;
  for (const std::uint64_t i : {0, 1}) {
    const auto at = bytes.subspan(kSlotsOffset + i * kCacheLineBytes, kCacheLineBytes);
    RecordSlot slot{};
    std::memcpy(&slot, at.data(), sizeof(slot));
    has_cleared |= std::ranges::all_of(at, [](std::byte each) { return each == std::byte{0}; });
    if (!is_valid(slot, header, bytes)) continue;
    older = newest && newest->number > slot.number ? slot : newest;
    if (!newest || slot.number > newest->number) newest = slot;
  }
  if (!newest) return std::nullopt;
  return NewestSlot{.slot = *newest,
                    .is_certain = older ? older->number + 1 == newest->number
                                        : has_cleared && newest->number == 1};
}

BlockId read_block(std::span<const std::byte> bytes, std::uint64_t offset) {
  std::uint64_t block = 0;
  std::memcpy(&block, bytes.data() + offset, sizeof(block));
  return unpacked(block);
}

/// The packed blocks at `offset`.
std::vector<BlockId> read_blocks(std::span<const std::byte> bytes, std::uint64_t offset,
                                 std::uint32_t count) {
  std::vector<BlockId> blocks(count);
  for (std::uint32_t i = 0; i < count; ++i)
    blocks[i] = read_block(bytes, offset + i * sizeof(std::uint64_t));
  return blocks;
}

/// Reads the blocks of the first group, and of the others if `newest` is certainly the last commit.
void read_tables(std::span<const std::byte> bytes, const RecordShape& shape,
                 const NewestSlot& newest, SequenceRecord& record) {
  for (std::uint32_t i = 0; i < newest.slot.blocks; ++i) {
    const std::uint64_t at = shape.blocks_offset() + shape.blocks_bytes(i);
    record.blocks.push_back(read_block(bytes, at));
    if (!newest.is_certain) continue;
    const auto windows = read_blocks(bytes, at + sizeof(std::uint64_t), shape.n_groups - 1);
    record.windows.insert(record.windows.end(), windows.begin(), windows.end());
  }
}

std::vector<BlockId> read_state(std::span<const std::byte> bytes, const RecordHeader& header,
                                const NewestSlot& newest) {
  const RecordSlot& slot = newest.slot;
  if (slot.state_copy == 0 || !newest.is_certain) return {};
  const std::uint64_t copy_bytes = header.state_blocks * sizeof(std::uint64_t);
  return read_blocks(
      bytes,
      record_size_bytes(shape_of(header)) + header.lists_bytes + (slot.state_copy - 1) * copy_bytes,
      header.state_blocks);
}

std::optional<ContentDigest> read_adapter(const RecordHeader& header) {
  ContentDigest digest;
  std::ranges::copy(header.adapter, digest.bytes.begin());
  return digest == ContentDigest{} ? std::nullopt : std::optional(digest);
}

}  // namespace

Result<std::vector<BlockId>> named_record_blocks(std::span<const std::byte> head, BlockId first,
                                                 const RecordShape& shape,
                                                 std::uint64_t block_size_bytes) {
  static_assert(sizeof(RecordHeader) <= kRecordHeadBytes);
  std::uint64_t magic = 0;
  std::memcpy(&magic, head.data(), sizeof(magic));
  if (magic != kRecordMagic) return std::vector<BlockId>{};
  const RecordHeader header = TRY(read_header(head, shape));
  const std::uint64_t bytes =
      record_size_bytes(shape) + header.lists_bytes + record_state_bytes(header.state_blocks);
  const std::uint32_t count = blocks_for_bytes(bytes, block_size_bytes);
  if (count > kNamedRecordBlocks) {
    return fail(Errc::FileCorrupt,
                fmt::format("a sequence record lies in {} blocks and names at most {}", count,
                            kNamedRecordBlocks));
  }
  std::vector<BlockId> blocks{first};
  for (std::uint32_t i = 1; i < count; ++i) blocks.push_back(unpacked(header.more_blocks[i - 1]));
  return blocks;
}

Result<SequenceRecord> read_record(std::span<const std::byte> bytes, const RecordShape& shape) {
  if (bytes.size() < record_size_bytes(shape)) {
    return fail(Errc::FileCorrupt, fmt::format("a sequence record has {} bytes, {} are expected",
                                               bytes.size(), record_size_bytes(shape)));
  }
  const RecordHeader header = TRY(read_header(bytes, shape));
  const std::optional<NewestSlot> newest = newest_slot(bytes, header);
  if (!newest) return fail(Errc::FileCorrupt, "both commits of a sequence record are damaged");
  const std::string_view request(header.request, strnlen(header.request, sizeof(header.request)));
  if (!is_engine_request_id(request)) {
    return fail(Errc::FileCorrupt, "the request id of a sequence record is malformed");
  }
  SamplingParams sampling = TRY(read_sampling(header, bytes));
  SequenceRecord record{.engine_request_id = {std::string(request)},
                        .sampling = std::move(sampling),
                        .max_emitted_tokens = header.max_emitted_tokens,
                        .prompt_tokens = header.prompt_tokens,
                        .committed = newest->slot.committed,
                        .tokens = std::vector<TokenId>(newest->slot.tokens),
                        .blocks = {},
                        .windows = {},
                        .state = read_state(bytes, header, *newest),
                        .adapter = read_adapter(header)};
  read_tables(bytes, shape, *newest, record);
  std::memcpy(record.tokens.data(), bytes.data() + kTokensOffset,
              record.tokens.size() * sizeof(TokenId));
  return record;
}

}  // namespace leasehold
