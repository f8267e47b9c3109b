/// The update of a recurrent state on AVX-512, with the bits of the plain loops. RowKernels
/// documents the function.
#pragma once

#include "kernels/numerics/recurrence.hpp"

namespace leasehold::avx512 {

[[gnu::target("avx512f,avx512dq,avx2,fma")]] void advance_state(const StateHead& head,
                                                                const StateRow* rows,
                                                                std::uint32_t n_rows);

}  // namespace leasehold::avx512
