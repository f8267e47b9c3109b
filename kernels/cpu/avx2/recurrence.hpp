/// Convolutions and the update of a recurrent state on AVX2, with the bits of the plain loops.
/// RowKernels documents the functions.
#pragma once

#include "kernels/numerics/recurrence.hpp"
#include "kernels/recurrent_rows.hpp"

namespace leasehold::avx2 {

[[gnu::target("avx2,fma,f16c")]] void convolve(const ConvolvedChannels& channels);
[[gnu::target("avx2,fma,f16c")]] void advance_state(const StateHead& head, const StateRow* rows,
                                                    std::uint32_t n_rows);

}  // namespace leasehold::avx2
