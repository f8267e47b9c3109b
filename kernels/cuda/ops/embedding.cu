/// out[r, :] = table[tokens[r], :]; one thread per element.
#include "kernels/cuda/device/embedding_params.hpp"
#include "kernels/cuda/device/gate.cuh"
#include "kernels/quant/element.hpp"

namespace leasehold::device {

__device__ __forceinline__ float block_element(TensorType type, const std::byte* block,
                                               std::uint32_t e) {
  if (type == TensorType::F32) return *reinterpret_cast<const float*>(block);
  if (type == TensorType::F16) return read_half(block);
  if (type == TensorType::BF16) return read_bfloat(block);
  const element::Halves halves = element::halves_of(type, block);
  switch (type) {
    case TensorType::Q8_0:
      return element::q8_0(block, halves, e);
    case TensorType::Q4_0:
      return element::q4_0(block, halves, e);
    case TensorType::Q4_1:
      return element::q4_1(block, halves, e);
    case TensorType::Q5_0:
      return element::q5_0(block, halves, e);
    case TensorType::Q5_1:
      return element::q5_1(block, halves, e);
    case TensorType::Q2_K:
      return element::q2_k(block, halves, e);
    case TensorType::Q3_K:
      return element::q3_k(block, halves, e);
    case TensorType::Q4_K:
      return element::q4_k(block, halves, e);
    case TensorType::Q5_K:
      return element::q5_k(block, halves, e);
    default:
      return element::q6_k(block, halves, e);
  }
}

/// Grid: columns / 256, rows.
LEASEHOLD_KERNEL(lh_embedding, EmbeddingParams, 256) {
  if (engine_is_stopped(p.gate)) return;
  const std::uint32_t row = blockIdx.y;
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= row_count(p.gate) || i >= p.n_embd) return;
  const auto token = static_cast<std::uint32_t>(p.tokens[row]);
  // A token outside the vocabulary must not read beyond the table. It gives NaN, which sampling
  // detects.
  const std::size_t offset =
      std::size_t{token} * p.row_bytes + std::size_t{i / p.shape.elements} * p.shape.size_bytes;
  const float value = token < p.n_vocab
                          ? block_element(p.type, p.table + offset, i % p.shape.elements)
                          : __uint_as_float(0x7fc00000);
  p.out[std::size_t{row} * p.n_embd + i] = value;
}

}  // namespace leasehold::device
