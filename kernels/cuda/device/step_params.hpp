/// Parameters of a step's helper kernels: scattered copies, and the gate between segments of a
/// graph. C++20-clean.
#pragma once

#include "kernels/cuda/device/gate.hpp"

namespace leasehold::device {

struct ScatterPiece {
  std::uint64_t to;          ///< Address on the device.
  std::uint64_t from_bytes;  ///< Offset in the staging buffer.
  std::uint32_t size_bytes;
};

struct ScatterParams {
  KernelGate gate;
  const std::byte* staging;
  const ScatterPiece* pieces;  ///< [n_first + n_last], in device memory
  std::uint32_t* counter;      ///< Zero at launch; used only if there are first and last pieces.
  std::uint32_t n_first;
  std::uint32_t n_last;  ///< Pieces written after all first ones, by one thread each.
};

struct SegmentGateParams {
  KernelGate gate;
  std::uint64_t* seen;      ///< For the host: segment in the low half, epoch in the high half.
  std::uint64_t condition;  ///< The condition of the next segment, or 0.
  std::uint32_t segment;
};

}  // namespace leasehold::device
