/// The scalar dequantisers: the oracle every other path must match to the bit.
///
/// GGUF block layouts, little-endian, packed (source: the GGUF specification and ggml's types):
///
///   F32    float                          x = it
///   F16    half                           x = it, exactly
///   Q8_0   half d | int8 q[32]            x[i] = d·q[i]
///   Q4_0   half d | uint8 q[16]           x[i] = d·((q[i] & 15) - 8), x[i+16] = d·((q[i] >> 4) -
///   8)
///
/// d is widened to float first; each element is then one float product, rounded once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/quant/tensor_type.hpp"

namespace leasehold {

/// Reads row_size_bytes(type, n) bytes, writes n floats. n is a multiple of the block's elements;
/// `source` needs no alignment.
void dequantize_row(TensorType type, const std::byte* source, float* out, std::size_t n);

}  // namespace leasehold
