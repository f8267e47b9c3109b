/// Packs blocks of 256 weights. Pure, with correctly rounded float operations only.
///
/// Scales are chosen by the extremes of each sub-block; a search would be a little nearer.
/// Source: kernels/quant/super_blocks.hpp.
#pragma once

#include <cstddef>

namespace leasehold::make_model {

inline constexpr std::size_t kSuperBlock = 256;

/// Each writes one block to `out` and returns its end. `weights` is [256].
std::byte* pack_q4_k_block(const float* weights, std::byte* out);
std::byte* pack_q6_k_block(const float* weights, std::byte* out);

}  // namespace leasehold::make_model
