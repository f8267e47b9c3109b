/// Where the step's keys and values lie. Plain data, the same on both sides. C++20-clean.
///
/// Block tables lie in device memory one after the other: block i of sequence s is at
/// `addresses[first[s] + i]`. A block is laid out as KvLayout says.
#pragma once

#include "kernels/numerics/host_device.hpp"
#include "kernels/op_args.hpp"

namespace leasehold::device {

struct BlockTables {
  const std::uint64_t* addresses;  ///< Of blocks, on the device.
  const std::uint32_t* first;      ///< [n_sequences]
};

/// One layer of it.
struct KvAddressing {
  BlockTables tables;
  std::uint64_t keys_offset_bytes;  ///< From the start of a block to the layer's keys.
  std::uint64_t plane_bytes;        ///< Values lie that far behind the keys.
  std::uint32_t head_bytes;         ///< From one kv head's [16][head_dim] to the next.
  KvType type;

  static constexpr KvAddressing of(const KvLayout& layout, std::uint32_t layer,
                                   BlockTables tables) {
    return {.tables = tables,
            .keys_offset_bytes = layout.head_offset_bytes(layer, 0, 0),
            .plane_bytes = layout.plane_size_bytes(),
            .head_bytes = KvLayout::kBlockTokens * layout.head_dim * size_bytes(layout.type),
            .type = layout.type};
  }
};

}  // namespace leasehold::device
