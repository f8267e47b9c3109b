/// Reads one element of a row as a float, with the bits of dequantize_row. Kernels that read few
/// rows, or rows of any type, use it.
#pragma once

#include "kernels/cuda/device/gate.cuh"
#include "kernels/quant/element.hpp"

namespace leasehold::device {

/// Element e of a block.
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
    case TensorType::IQ4_NL:
      return element::iq4_nl(block, halves, e);
    case TensorType::IQ4_XS:
      return element::iq4_xs(block, halves, e);
    case TensorType::MXFP4:
      return element::mxfp4(block, halves, e);
    default:
      return element::q6_k(block, halves, e);
  }
}

}  // namespace leasehold::device
