/// The matrices of an adapter, and their places in extents of memory. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "kernels/quant/tensor_type.hpp"
#include "worker/model/adapter_matrices.hpp"

namespace leasehold {

/// What an adapter adds to one weight W: W·x + scale·B·(A·x) (Hu et al. 2021, LoRA).
struct AdaptedWeight {
  std::uint32_t layer = 0;
  AdapterTarget target = AdapterTarget::Query;
  TensorType type = TensorType::F16;  ///< Of both matrices in memory: F32, F16 or BF16.
  std::uint32_t rank = 0;             ///< At least 1.
  float scale = 0.0F;                 ///< α / rank, or α / √rank.
  std::uint32_t n_in = 0;
  std::uint32_t n_out = 0;
};

/// The two matrices that an adapter has for a weight.
enum class AdapterHalf : std::uint8_t {
  A,  ///< [rank, n_in]
  B,  ///< [rank, n_out]: B transposed
};

/// One matrix in memory.
struct AdapterPiece {
  std::uint32_t weight = 0;  ///< Index of the weight among those of the file.
  AdapterHalf half = AdapterHalf::A;
  std::uint32_t extent = 0;      ///< Index of the extent that holds the whole matrix.
  std::uint64_t offset = 0;      ///< Byte in the extent; a multiple of kAdapterAlignment.
  std::uint64_t size_bytes = 0;  ///< At least 1.
};

inline constexpr std::uint64_t kAdapterAlignment = 64;

struct AdapterLayout {
  std::uint32_t n_extents = 0;
  std::vector<AdapterPiece> pieces;  ///< [2 · n_weights]: A and B of each weight.
};

/// "the matrix A of layer 3's q", for messages.
std::string name(const AdaptedWeight& weight, AdapterHalf half);

/// The size of one matrix in memory.
std::uint64_t size_bytes(const AdaptedWeight& weight, AdapterHalf half);

/// The size of all matrices.
std::uint64_t size_bytes(std::span<const AdaptedWeight> weights);

/// Places each matrix whole into the first extent with room for it, in the order in which steps
/// read them: all A, then all B, each by layer and target. If this takes more extents than placing
/// large matrices first, large ones go first. The same arguments give the same layout. Errors:
/// UnsupportedModel naming the matrix and its size if an extent is smaller.
Result<AdapterLayout> make_adapter_layout(std::span<const AdaptedWeight> weights,
                                          std::uint64_t extent_bytes);

}  // namespace leasehold
