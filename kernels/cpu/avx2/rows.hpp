/// Row operations on AVX2 + FMA + F16C with the bits of the plain loops. RowKernels documents each
/// function.
///
/// The target attribute is part of each declaration: callers need the CPU check, but not AVX2.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/row_kernels.hpp"

namespace leasehold::avx2 {

[[gnu::target("avx2,fma,f16c")]] void rms_norm_row(const NormRow& row);

[[gnu::target("avx2,fma,f16c")]] void swiglu(Activation activation, float* gate, const float* up,
                                             std::size_t n);

[[gnu::target("avx2,fma,f16c")]] void softcap(float* x, std::size_t n, float cap);

[[gnu::target("avx2,fma,f16c")]] void add_scaled(float weight, const float* x, float* out,
                                                 std::size_t n);

[[gnu::target("avx2,fma,f16c")]] void rope_head(float* head,           // [head_dim]
                                                const float* cos_sin,  // [rope_dim/2, 2]
                                                std::uint32_t rope_dim, RopeStyle style);

[[gnu::target("avx2,fma,f16c")]] void store_kv(KvType type, const float* values, std::byte* to,
                                               std::size_t n);

}  // namespace leasehold::avx2
