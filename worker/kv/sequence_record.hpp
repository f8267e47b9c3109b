/// The record of a sequence: everything needed to continue it after its worker died.
///
/// The record lies in blocks of the tenant's own extents. So the broker owns it, it is adopted with
/// the KV cache, and it is scrubbed with it. Layout, in bytes from its start (the record may span
/// blocks; no field straddles two):
///
///   0    RecordHeader    the request, and the record's own blocks; written once, before the first
///                        commit
///   256  RecordSlot × 2  the progress; written in turn, `number` last
///   384  u32 tokens[max_context]                       append-only
///   …    u64 blocks[ceil(max_context / 16)]            append-only, extent << 24 | index
///   …    what sampling_lists.hpp packs                 written with the header; usually nothing
///
/// A commit appends tokens and blocks, then fills the older slot: checksums and counts first, the
/// number last (release). The counts bound the append-only arrays, the checksums cover their
/// content. A reader takes the valid slot with the higher number. A torn slot has a wrong checksum
/// or still its old number; then the other slot, one commit older, is valid.
///
/// A record names the blocks of committed positions. Later ones may be given back
/// (BlockTable::trim).
///
/// Several records may name a block: the first ones of sequences that share a cached prefix
/// (worker/kv/prefix_index.hpp).
///
/// A record in more than kNamedRecordBlocks blocks does not name them all, and no other process can
/// read it.
///
/// The record of a sequence that ended is cleared before any block that it names is written again
/// (Engine::clear_released_records). So the blocks that a record names hold the KV of its text.
///
/// Readers treat every byte as untrusted input. Units: tokens, positions, blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/checksum.hpp"
#include "kernels/op_args.hpp"
#include "worker/kv/block_pool.hpp"
#include "worker/kv/sampling_lists.hpp"

namespace leasehold {

/// Bytes of a record for up to `max_context` positions, without the sampling lists.
std::uint64_t record_size_bytes(std::uint32_t max_context);

/// Errors: UnsupportedModel when blocks of this size would split the fields of a record.
Result<void> check_record_block_size(std::uint64_t block_size_bytes);

/// Blocks for a record, and additional blocks for the lists of `sampling`.
std::uint32_t record_block_count(std::uint32_t max_context, std::uint64_t block_size_bytes);
std::uint32_t list_block_count(const SamplingParams& sampling, std::uint64_t block_size_bytes);

/// The blocks of one record. The block size is a multiple of 64.
struct RecordMemory {
  std::vector<Leased<std::byte>> blocks;
  std::uint64_t block_size_bytes = 0;
};

/// The content of a record, after all checks.
struct SequenceRecord {
  RequestId engine_request_id;
  SamplingParams sampling;
  std::uint32_t max_emitted_tokens = 0;
  std::uint32_t prompt_tokens = 0;
  std::uint32_t committed = 0;  ///< Positions whose keys and values are in the cache.
  std::vector<TokenId> tokens;  ///< Prompt and emitted.
  std::vector<BlockId> blocks;  ///< Of the KV cache, in order of position.
  bool operator==(const SequenceRecord&) const = default;
};

/// The pieces a commit writes into the records of its sequences, gathered for one write of the
/// backend. It keeps its memory from step to step. Threads: one.
class RecordPieces {
 public:
  void clear();
  /// Copies `bytes`; they may lie in several blocks.
  void add(const RecordMemory& memory, std::uint64_t offset, std::span<const std::byte> bytes,
           bool is_last = false);
  /// Valid until the next `add` or `clear`.
  std::span<const LeasedPiece> pieces();

 private:
  std::vector<LeasedPiece> pieces_;  // `pieces` sets the addresses
  std::vector<std::byte> bytes_;     // of all pieces, one after the other
};

/// One commit of a sequence as its record stores it. Views: they are read during the call only.
struct RecordCommit {
  const RequestId* engine_request_id = nullptr;
  const SamplingParams* sampling = nullptr;
  std::uint32_t max_emitted_tokens = 0;
  std::uint32_t prompt_tokens = 0;
  std::uint32_t committed = 0;          ///< Positions in the KV cache once this commit is done.
  std::span<const TokenId> tokens;      ///< Prompt and emitted.
  std::span<const TokenId> next;        ///< The tokens this commit emits.
  std::span<const BlockId> blocks;      ///< Of the committed positions, in order.
  std::span<const BlockId> own_blocks;  ///< Those of RecordMemory.
};

/// How much of a sequence its record already holds.
struct RecordProgress {
  std::uint64_t number = 0;  ///< Of the last commit; 0: there is no record yet.
  std::uint32_t tokens = 0;
  std::uint32_t blocks = 0;
  Checksum tokens_checksum;  ///< Over the recorded ones.
  Checksum blocks_checksum;
};

/// Adds the pieces that bring a record from `progress` to `commit`, and moves `progress` on. The
/// first call writes the header.
void commit_record(RecordPieces& pieces, const RecordMemory& memory, std::uint32_t max_context,
                   const RecordCommit& commit, RecordProgress& progress);

/// The bytes that `named_record_blocks` needs.
inline constexpr std::uint64_t kRecordHeadBytes = 256;

/// The blocks of the record whose header is at the start of block `first`, in order. Nothing if no
/// record begins there. Errors: FileCorrupt, also for a record that does not name all its blocks.
Result<std::vector<BlockId>> named_record_blocks(std::span<const std::byte> head, BlockId first,
                                                 std::uint32_t max_context,
                                                 std::uint64_t block_size_bytes);

/// Reads a record from contiguous bytes. The caller checks that its tokens are in the vocabulary
/// and its blocks in the lease. Errors: FileCorrupt, naming what is wrong.
Result<SequenceRecord> read_record(std::span<const std::byte> bytes, std::uint32_t max_context);

}  // namespace leasehold
