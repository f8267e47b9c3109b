/// One row at a time on AVX2 + FMA + F16C, bit for bit as the plain loops have it.
///
/// The target attribute is part of each declaration: a caller needs no AVX2, only the CPU check.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/op_args.hpp"

namespace leasehold::avx2 {

/// Rows that share each load of w: three fill the registers.
inline constexpr std::uint32_t kDotGroup = 3;

/// out[r] = w·x[r] for the first n_rows (1 … kDotGroup) of the group.
[[gnu::target("avx2,fma,f16c")]] void dot_group(const float* w, const float* const (&x)[kDotGroup],
                                                std::uint32_t n_rows, std::size_t n,
                                                float (&out)[kDotGroup]);

struct NormRow {
  const float* x;       // [width]
  const float* weight;  // [width]
  float* out;           // [width]; may be x
  std::uint32_t width;
  float epsilon;
};
[[gnu::target("avx2,fma,f16c")]] void rms_norm_row(const NormRow& row);

/// gate[i] = silu(gate[i])·up[i]
[[gnu::target("avx2,fma,f16c")]] void swiglu(float* gate, const float* up, std::size_t n);

/// out[i] = fma(weight, x[i], out[i])
[[gnu::target("avx2,fma,f16c")]] void add_scaled(float weight, const float* x, float* out,
                                                 std::size_t n);

/// Turns one head by its row's angles.
[[gnu::target("avx2,fma,f16c")]] void rope_head(float* head,           // [head_dim]
                                                const float* cos_sin,  // [rope_dim/2, 2]
                                                std::uint32_t rope_dim, RopeStyle style);

/// Keys or values into a block, narrowed to its type.
[[gnu::target("avx2,fma,f16c")]] void store_kv(KvType type, const float* values, std::byte* to,
                                               std::size_t n);

}  // namespace leasehold::avx2
