/// Packs blocks of 256 weights. Pure, with correctly rounded float operations only.
///
/// The scale of a sub-block follows from its extreme weights; a search would find slightly better
/// scales.
/// Source: kernels/quant/super_blocks.hpp.
#pragma once

#include <cstddef>

namespace leasehold::make_model {

inline constexpr std::size_t kSuperBlock = 256;

/// Each function packs 256 weights into one block at `out` and returns the end of the block.
/// `weights` is [256].
std::byte* pack_q4_k_block(const float* weights, std::byte* out);
std::byte* pack_q6_k_block(const float* weights, std::byte* out);

}  // namespace leasehold::make_model
