/// Options of a CUDA backend.
#pragma once

#include <cstdint>
#include <functional>

#include "common/result.hpp"

namespace leasehold::cuda {

enum class GraphUse : std::uint8_t {
  None,   ///< Every kernel is a separate launch.
  Plain,  ///< Graphs without gates inside, to measure the cost of the gates.
  Gated,
};

/// How matrices of rows are multiplied. Matrices of row groups are always multiplied as int8, and
/// F32 rows as floats, both with the CPU's bits.
enum class RowArithmetic : std::uint8_t {
  Halves,  ///< On tensor cores; the bits differ from the CPU's.
  Floats,  ///< With the CPU's bits; slow.
};

struct CudaOptions {
  RowArithmetic rows = RowArithmetic::Halves;
  GraphUse graphs = GraphUse::Gated;
  std::uint32_t segment_layers = 4;
  /// The most launches in the stream at once. A lower number drains the card sooner, but the host
  /// must stay ahead of the shortest kernels.
  std::uint32_t max_in_flight = 8;
  /// Called once, on the engine's thread, with the driver's error, if no graph can be made and the
  /// backend launches kernels one by one.
  std::function<void(const Error&)> on_graphs_unavailable = {};
};

}  // namespace leasehold::cuda
