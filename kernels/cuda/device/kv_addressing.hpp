/// Device addresses of the step's keys and values. Plain data, the same for the host compiler and
/// nvcc. C++20-clean.
///
/// Block tables are consecutive in device memory: block i of sequence s is at `addresses[first[s] +
/// i]`. KvLayout defines the layout of a block.
#pragma once

#include "kernels/numerics/host_device.hpp"
#include "kernels/op_args.hpp"

namespace leasehold::device {

struct BlockTables {
  const std::uint64_t* addresses;  ///< Device addresses of blocks.
  const std::uint32_t* first;      ///< [n_sequences]
};

/// The keys and values of one layer.
struct KvAddressing {
  BlockTables tables;
  std::uint64_t keys_offset_bytes;  ///< From a block's start to the keys of the layer.
  std::uint64_t values_bytes;       ///< From the keys to the values.
  std::uint32_t head_bytes;         ///< From one kv head to the next.
  KvType type;

  static constexpr KvAddressing of(const KvLayer& layer, BlockTables tables) {
    return {.tables = tables,
            .keys_offset_bytes = layer.head_offset_bytes(0, 0),
            .values_bytes = layer.values_offset_bytes(),
            .head_bytes = layer.head_size_bytes(),
            .type = layer.type};
  }
};

}  // namespace leasehold::device
