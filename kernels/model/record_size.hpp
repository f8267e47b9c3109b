/// The size of a sequence's record, which lies in the tenant's KV blocks beside the keys and
/// values. worker/kv/sequence_record.hpp shows its layout.
#pragma once

#include <cstdint>

#include "kernels/kv_layout.hpp"
#include "kernels/state_layout.hpp"

namespace leasehold {

inline constexpr std::uint64_t kTokensOffset = 576;

/// What the size of a record depends on besides its request.
struct RecordShape {
  std::uint32_t max_context = 0;  ///< Positions of the longest text.
  std::uint32_t n_groups = 1;     ///< KvLayout::n_groups(): blocks that each 16 positions have.

  std::uint64_t blocks_offset() const {
    return (kTokensOffset + std::uint64_t{max_context} * sizeof(std::uint32_t) + 7) / 8 * 8;
  }
  /// The most blocks of a group.
  std::uint32_t max_blocks() const {
    return (max_context + KvLayout::kBlockTokens - 1) / KvLayout::kBlockTokens;
  }
  /// Bytes of the list of `n_blocks` blocks of each group.
  std::uint64_t blocks_bytes(std::uint32_t n_blocks) const {
    return std::uint64_t{n_groups} * n_blocks * sizeof(std::uint64_t);
  }

  bool operator==(const RecordShape&) const = default;
};

/// Bytes of a record without the sampling lists.
inline std::uint64_t record_size_bytes(const RecordShape& shape) {
  return shape.blocks_offset() + shape.blocks_bytes(shape.max_blocks());
}

/// The number of KV blocks that hold `bytes`.
inline std::uint32_t blocks_for_bytes(std::uint64_t bytes, std::uint64_t block_size_bytes) {
  return static_cast<std::uint32_t>((bytes + block_size_bytes - 1) / block_size_bytes);
}

/// Bytes of the list of blocks of a recurrent state, with `state_blocks` blocks in a copy.
inline std::uint64_t record_state_bytes(std::uint32_t state_blocks) {
  return std::uint64_t{kStateCopies} * state_blocks * sizeof(std::uint64_t);
}

/// The number of blocks for a record, without the sampling lists.
inline std::uint32_t record_block_count(const RecordShape& shape, std::uint64_t block_size_bytes,
                                        std::uint32_t state_blocks = 0) {
  return blocks_for_bytes(record_size_bytes(shape) + record_state_bytes(state_blocks),
                          block_size_bytes);
}

}  // namespace leasehold
