/// The record of a sequence: everything needed to continue the sequence after its worker died.
///
/// The record lies in blocks of the tenant's own extents, so the broker owns its memory, and it is
/// adopted and scrubbed together with the KV cache. Layout, in bytes from its start (the record may
/// span blocks; no field straddles two):
///
///   0    RecordHeader    the request, and the record's own blocks; written once, before the first
///                        commit
///   448  RecordSlot × 2  the progress; written in turn, `number` last
///   576  u32 tokens[max_context]                       append-only
///   …    u64 blocks[ceil(max_context / 16)][n_groups]  append-only, extent << 24 | index; the
///                                                      groups of KvLayout
///   …    what sampling_lists.hpp packs                 written with the header; usually nothing
///   …    u64 state[2][state_blocks]                    written with the header; the blocks of both
///                                                      copies of a recurrent state
///
/// A commit appends tokens and blocks, then fills the older slot: checksums and counts first, the
/// number last (release). The counts give the valid length of the append-only arrays; the checksums
/// cover their content. A reader takes the valid slot with the higher number. A partly written slot
/// has a wrong checksum or still its old number; then the other slot, which is one commit older, is
/// valid.
///
/// A slot also says which copy of the state belongs to its committed positions. The next step
/// overwrites the other copy. The state is therefore only used with the newer of two valid slots:
/// if only one slot is valid, a later commit may have been damaged, and the copy of the remaining
/// one overwritten.
///
/// The same holds for the blocks of layers with a window: those that no row after the newer slot's
/// committed positions reads may hold another text already.
///
/// A record lists only the blocks of committed positions, because later blocks may be released
/// (BlockTable::trim).
///
/// Several records may list the same block, when their sequences share a cached prefix
/// (worker/kv/prefix_index.hpp).
///
/// The header of a record in more than kNamedRecordBlocks blocks does not list them all, so no
/// other process can read the record.
///
/// The record of a sequence that ended is cleared before any block that it lists is written again
/// (LeasedRecords::clear_released), so the blocks that a record lists hold the KV of its text.
///
/// Readers treat every byte as untrusted input. Units: tokens, positions, blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/checksum.hpp"
#include "common/content_digest.hpp"
#include "kernels/model/record_size.hpp"
#include "kernels/op_args.hpp"
#include "worker/kv/block_pool.hpp"
#include "worker/kv/sampling_lists.hpp"

namespace leasehold {

/// Errors: UnsupportedModel when blocks of this size would split the fields of a record.
Result<void> check_record_block_size(std::uint64_t block_size_bytes);

/// The number of blocks for the lists of `sampling`, in addition to `record_block_count`.
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
  std::vector<BlockId> blocks;  ///< KV blocks of the first group in order of position.
  /// [blocks, n_groups - 1]: those of layers with a window. Only those that rows after the
  /// committed positions read hold the text. Empty if not even these certainly do.
  std::vector<BlockId> windows;
  /// Blocks of the recurrent state of the committed positions; empty if there is none that is
  /// certainly theirs.
  std::vector<BlockId> state;
  std::optional<ContentDigest> adapter;  ///< Under which the keys and values were computed.
  bool operator==(const SequenceRecord&) const = default;
};

/// The pieces that a commit writes into the records of its sequences, gathered for one write of the
/// backend. The buffers are reused in each step. Threads: one.
class RecordPieces {
 public:
  void clear();
  /// Copies `bytes`. Their destination may span several blocks.
  void add(const RecordMemory& memory, std::uint64_t offset, std::span<const std::byte> bytes,
           bool is_last = false);
  /// Valid until the next `add` or `clear`.
  std::span<const LeasedPiece> pieces();

 private:
  std::vector<LeasedPiece> pieces_;  // `pieces` sets the addresses
  std::vector<std::byte> bytes_;     // the bytes of all pieces, concatenated
};

/// One commit of a sequence as its record stores it. The views are read only during the call.
struct RecordCommit {
  const RequestId* engine_request_id = nullptr;
  const SamplingParams* sampling = nullptr;
  const ContentDigest* adapter = nullptr;  ///< Null: the base model.
  std::uint32_t max_emitted_tokens = 0;
  std::uint32_t prompt_tokens = 0;
  std::uint32_t committed = 0;      ///< Positions in the KV cache once this commit is done.
  std::span<const TokenId> tokens;  ///< Prompt and emitted.
  std::span<const TokenId> next;    ///< The tokens that this commit emits.
  std::span<const BlockId> blocks;  ///< Blocks of the committed positions, in order.
  /// [blocks - first_window, n_groups - 1] or more: of layers with a window, from block
  /// `first_window` of the positions on.
  std::span<const BlockId> windows = {};
  std::uint32_t first_window = 0;
  std::span<const BlockId> own_blocks;    ///< The blocks of the record itself, as in RecordMemory.
  std::span<const BlockId> state_blocks;  ///< Of both copies of the state; empty: none.
  /// The copy that is valid once this commit is done.
  std::optional<std::uint32_t> state_copy;
};

/// The part of a sequence that its record already holds.
struct RecordProgress {
  std::uint64_t number = 0;  ///< Number of the last commit; 0: there is no record yet.
  std::uint32_t tokens = 0;
  std::uint32_t blocks = 0;
  Checksum tokens_checksum;  ///< Over the recorded tokens.
  Checksum blocks_checksum;
};

/// Adds the pieces that advance a record from `progress` to `commit`, and updates `progress`. The
/// first call writes the header.
void commit_record(RecordPieces& pieces, const RecordMemory& memory, const RecordShape& shape,
                   const RecordCommit& commit, RecordProgress& progress);

/// The number of bytes that `named_record_blocks` needs.
inline constexpr std::uint64_t kRecordHeadBytes = 448;

/// The blocks of the record whose header is at the start of block `first`, in order. Empty if no
/// record begins there. Errors: FileCorrupt, also for a record whose header does not list all its
/// blocks.
Result<std::vector<BlockId>> named_record_blocks(std::span<const std::byte> head, BlockId first,
                                                 const RecordShape& shape,
                                                 std::uint64_t block_size_bytes);

/// Reads a record from contiguous bytes. The caller checks that its tokens are in the vocabulary
/// and its blocks in the lease. Errors: FileCorrupt, with the reason.
Result<SequenceRecord> read_record(std::span<const std::byte> bytes, const RecordShape& shape);

}  // namespace leasehold
