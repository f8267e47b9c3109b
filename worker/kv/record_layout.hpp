/// The fields of a sequence record (worker/kv/sequence_record.hpp shows the layout) and what its
/// checksums cover. Used by the code that writes and reads records, and by tests that forge them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "common/checksum.hpp"
#include "ipc/segment/segment_layout.hpp"
#include "kernels/model/record_size.hpp"

namespace leasehold {

inline constexpr std::uint64_t kRecordMagic = 0x4452'4345'5251'4553;
inline constexpr std::uint32_t kRecordVersion = 7;
inline constexpr std::uint64_t kSlotsOffset = 448;
inline constexpr unsigned kBlockIndexBits = 24;
inline constexpr std::uint32_t kNoLogprobs = UINT32_MAX;
/// The most blocks of a record that its header identifies. The first is the block with the header.
inline constexpr std::uint32_t kNamedRecordBlocks = 20;

inline constexpr std::uint8_t kIgnoresEos = 1;
inline constexpr std::uint8_t kIncludesStop = 2;

struct RecordHeader {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t max_context;
  char request[132];  // engine_request_id, zero-filled
  std::uint32_t min_tokens;
  std::uint64_t seed;
  float temperature;
  std::uint8_t flags;          // kIgnoresEos, kIncludesStop
  std::uint8_t n_groups;       // RecordShape
  std::uint16_t state_blocks;  // of a copy of the recurrent state; 0: none
  std::uint32_t prompt_tokens;
  std::uint32_t max_emitted_tokens;
  std::uint32_t top_k;
  float top_p;
  float min_p;
  float typical_p;
  float repetition_penalty;
  float presence_penalty;
  float frequency_penalty;
  std::uint32_t penalty_window;
  std::uint32_t top_logprobs;    // kNoLogprobs: not requested
  std::uint32_t lists_bytes;     // size of the packed lists (sampling_lists.hpp)
  std::uint64_t lists_checksum;  // over the lists and the blocks of the state behind them
  std::uint64_t more_blocks[kNamedRecordBlocks - 1];  // packed as in `blocks`; 0: none
  std::uint8_t adapter[32];                           // ContentDigest; zero: the base model
  std::uint64_t checksum;                             // over everything before it
};
static_assert(sizeof(RecordHeader) <= kSlotsOffset && std::is_trivially_copyable_v<RecordHeader>);

struct RecordSlot {
  std::uint64_t checksum;  // over all other fields
  std::uint64_t tokens_checksum;
  std::uint64_t blocks_checksum;
  std::uint32_t committed;
  std::uint32_t tokens;
  std::uint32_t blocks;
  std::uint32_t state_copy;  // 1 or 2: the valid copy of the state; 0: none
  std::uint64_t number;      // stored last; 0: never written
};
static_assert(sizeof(RecordSlot) <= kCacheLineBytes);

inline std::uint64_t slot_checksum(const RecordSlot& slot) {
  const std::uint64_t fields[] = {slot.number,         slot.committed,  slot.tokens,
                                  slot.blocks,         slot.state_copy, slot.tokens_checksum,
                                  slot.blocks_checksum};
  return Checksum::of(fields, sizeof(fields));
}

inline std::uint64_t header_checksum(const RecordHeader& header) {
  return Checksum::of(&header, offsetof(RecordHeader, checksum));
}

}  // namespace leasehold
