/// Parameters and shared memory of the int8 matmuls that start before the previous kernel has ended
/// (device/int8/matmul_int8_early.cuh). Plain data, the same for the host compiler and nvcc.
/// C++20-clean.
#pragma once

#include "kernels/cuda/device/int8/int8_units.hpp"
#include "kernels/cuda/device/int8/matmul_int8_params.hpp"

namespace leasehold::device {

/// The columns for which there are such kernels.
inline constexpr std::uint32_t kEarlyColumns[] = {1, 2, 8};
/// The most units of a chunk that are in shared memory at once.
inline constexpr std::uint32_t kMaxEarlyStages = 8;
/// Shared memory of all blocks of one launch on an SM, so that two kernels share an SM.
inline constexpr std::uint32_t kEarlySharedBytesPerSm = 104 * 1024;

/// The norm of the rows of x that every block computes for itself, with the bits of lh_rms_norm.
struct RowNorm {
  const float* x;          ///< [n_rows, width]; null: the rows of x are rounded already
  const float* weight;     ///< [width]
  const float* out_scale;  ///< [1], or null
  std::uint32_t width;
  float epsilon;
  float scale;
  std::uint32_t is_centered;  ///< Not 0: subtracts the mean of x first.
};

/// The dynamic shared memory of a block, in bytes from its start. A warp has a barrier for each
/// stage of its ring. The results of chunks exist twice, for a group and the next one.
///
///   barriers  [kInt8Chunks][kMaxEarlyStages]
///   parts     [2][kInt8Chunks][columns][16] floats
///   scales    [n_blocks][columns] floats: those of x
///   rows      the rounded rows of x (EarlyRows), unless their units pass through the rings
///   rings     [kInt8Chunks][stages]: a unit of weights; without `rows` also a unit of x
struct EarlyShared {
  std::uint32_t scales_at;
  std::uint32_t rows_at;
  std::uint32_t rings_at;
  std::uint32_t stages;  ///< At least two; less: it does not fit.

  constexpr std::uint32_t size_bytes(std::uint32_t stage_bytes) const {
    return rings_at + kInt8Chunks * stages * stage_bytes;
  }
};

inline constexpr std::uint32_t kEarlyPartsAt =
    kInt8Chunks * kMaxEarlyStages * sizeof(std::uint64_t);

constexpr std::uint32_t aligned_16(std::uint32_t bytes) {
  return (bytes + 15) / 16 * 16;
}

/// Whether a launch of this number of columns always keeps its rows of x in shared memory. Others
/// do if the rows fit.
LEASEHOLD_HD constexpr bool early_keeps_rows(std::uint32_t columns) {
  return columns <= 2;
}

/// Where a block keeps its rows of x, in bytes from `rows`: q, and of rows that it rounds itself
/// the scales and the sums as in Int8Rows. Rows of q are an odd multiple of what four lanes of an
/// mma load from a column at once, so that neighbouring columns are in different banks.
struct EarlyRows {
  std::uint32_t q_stride;
  std::uint32_t scales_at;
  std::uint32_t sums_at;
  std::uint32_t size_bytes;
};
constexpr EarlyRows early_rows(const GroupFormat& format, std::uint32_t columns,
                               std::uint32_t n_in) {
  const std::uint32_t step = int8_has_pairs(format) ? 32 : 16;
  EarlyRows rows{
      .q_stride = (n_in / step | 1) * step, .scales_at = 0, .sums_at = 0, .size_bytes = 0};
  rows.scales_at = columns * rows.q_stride;
  rows.sums_at = rows.scales_at +
                 aligned_16(columns * (n_in / format.elements) * std::uint32_t{sizeof(float)});
  rows.size_bytes = rows.sums_at +
                    aligned_16(columns * (n_in / kInt8Strip) * std::uint32_t{sizeof(std::int16_t)});
  return rows;
}

/// The bytes of a stage of one chunk.
constexpr std::uint32_t early_stage_bytes(const Int8Unit& unit, std::uint32_t columns,
                                          bool has_rows) {
  return unit.weight_bytes + (has_rows ? 0 : columns * unit.column_stride);
}

struct EarlyMatmulParams {
  Int8MatmulParams matmul;  ///< Without experts; its `partials` and `counters` are not used.
  RowNorm norm;
  EarlyShared shared;
  EarlyRows rows;         ///< q_stride is 0 if units of x pass through the rings.
  std::uint32_t n_tiles;  ///< Groups of all segments.
};

}  // namespace leasehold::device
