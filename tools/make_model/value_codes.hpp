/// Packs blocks of types whose 4-bit codes are indices of a table of values. Pure, with correctly
/// rounded float operations only.
///
/// Source: kernels/quant/code_values.hpp, kernels/quant/super_blocks.hpp.
#pragma once

#include <cstddef>

namespace leasehold::make_model {

/// Each function packs one block at `out` and returns the end of the block. `weights` is [32], and
/// [256] for IQ4_XS.
std::byte* pack_iq4_nl_block(const float* weights, std::byte* out);
std::byte* pack_iq4_xs_block(const float* weights, std::byte* out);
std::byte* pack_mxfp4_block(const float* weights, std::byte* out);

}  // namespace leasehold::make_model
