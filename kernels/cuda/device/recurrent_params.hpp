/// Parameters of convolutions and of recurrences. Plain data, the same for the host compiler and
/// nvcc. C++20-clean.
#pragma once

#include "kernels/cuda/device/gate.hpp"
#include "kernels/numerics/host_device.hpp"
#include "kernels/state_layout.hpp"

namespace leasehold::device {

/// The recurrent states of a step: the address of block b in copy c of sequence s is
/// `addresses[(s * kStateCopies + c) * DeviceStep::state_blocks + b]`. A step reads copy 0 and
/// writes copy 1. Addresses of 0 in copy 0 mean a state of zeros.
struct StateTables {
  const std::uint64_t* addresses;  ///< Device addresses of blocks.
};

/// The pieces of the heads of a layer, which lie as StateLayout places pieces of one size: at equal
/// distances in the first block behind the pieces before, and from the start of later blocks.
struct HeadPieces {
  StatePiece first;
  std::uint32_t stride_bytes;    ///< From a piece to the next one in its block.
  std::uint32_t in_first_block;  ///< 1 or more
  std::uint32_t in_later_block;  ///< 1 or more

  LEASEHOLD_HD constexpr StatePiece of(std::uint32_t head) const {
    if (head < in_first_block) return {first.block, first.offset_bytes + head * stride_bytes};
    const std::uint32_t later = head - in_first_block;
    return {first.block + 1 + later / in_later_block, later % in_later_block * stride_bytes};
  }
};

struct ConvolutionParams {
  KernelGate gate;
  StateTables states;
  const float* x;            ///< [n_rows, n_channels]
  const float* input_gate;   ///< [n_rows, n_channels], or null
  const float* output_gate;  ///< [n_rows, n_channels], or null
  float* out;                ///< [n_rows, n_channels]
  const float* weight;       ///< [n_channels, n_taps]
  const float* bias;         ///< [n_channels], or null
  StatePiece piece;          ///< [n_taps - 1, n_channels]
  std::uint32_t n_channels;
  std::uint32_t n_taps;
  std::uint32_t applies_silu;  ///< Not 0: applies silu before the output gate.
};

/// RecurrenceArgs on the device.
struct RecurrenceParams {
  KernelGate gate;
  StateTables states;
  float* x;                  ///< [n_rows, row_width]
  float* steps;              ///< [n_rows, n_heads]
  float* weights;            ///< [n_rows, n_heads]
  const float* step_bias;    ///< [n_heads]
  const float* decay_rates;  ///< [n_heads]
  const float* skip;         ///< [n_heads], or null
  float* out;                ///< [n_rows, n_heads, value_dim]
  HeadPieces pieces;
  std::uint32_t row_width;
  std::uint32_t query_offset;
  std::uint32_t key_offset;
  std::uint32_t value_offset;
  std::uint32_t n_groups;
  std::uint32_t n_heads;
  std::uint32_t key_dim;
  std::uint32_t value_dim;
  std::uint32_t alternates_groups;
  std::uint32_t is_delta;
  float epsilon;
};

/// The columns of a head's matrix that a block of `lh_recurrence` advances, one per lane.
inline constexpr std::uint32_t kStateColumns = 32;

}  // namespace leasehold::device
