/// The scalar dequantisers. Every other path must give the same bits.
///
/// GGUF block layouts, little-endian, packed (source: the GGUF specification and ggml's types;
/// those of 256 elements are in kernels/quant/super_blocks.hpp):
///
///   F32    float                                   x = the float
///   F16    half                                    x = the half, exactly
///   BF16   the upper half of a float               x = that float, exactly
///   Q8_0   half d | int8 q[32]                     x[i] = d·q[i]
///   Q4_0   half d | uint8 q[16]                    x[i] = d·(lo(q[i]) - 8)
///   Q4_1   half d, m | uint8 q[16]                 x[i] = d·lo(q[i]) + m
///   Q5_0   half d | uint32 h | uint8 q[16]         x[i] = d·((lo(q[i]) | 16·bit(h, i)) - 16)
///   Q5_1   half d, m | uint32 h | uint8 q[16]      x[i] = d·(lo(q[i]) | 16·bit(h, i)) + m
///   IQ4_NL half d | uint8 q[16]                    x[i] = d·value(lo(q[i]))
///   MXFP4  uint8 e | uint8 q[16]                   x[i] = 2^(e - 128)·value(lo(q[i]))
///
/// value() is a table (code_values.hpp). lo(q[i]) is q[i] & 15; x[i + 16] uses q[i] >> 4 and bit(h,
/// i + 16) in the same way.
///
/// Halves are widened to float first. The product of q with a scale, or with a scale and a
/// sub-block scale, has at most 24 significant bits and is exact. So an element rounds at most
/// once: when a minimum is added. The order of operations therefore does not matter, and fma would
/// give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/quant/tensor_type.hpp"

namespace leasehold {

/// Reads row_size_bytes(type, n) bytes and writes n floats. n is a multiple of the block's
/// elements; `source` needs no alignment.
void dequantize_row(TensorType type, const std::byte* source, float* out, std::size_t n);

}  // namespace leasehold
