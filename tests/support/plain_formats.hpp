/// Block formats once more, in doubles and straight from their published description, sharing no
/// code with kernels/quant: the judge of the dequantisers.
///
/// Source: the GGUF specification and ggml's documentation of its block types. Each function walks
/// a block front to back, as the description does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace leasehold::testing {

/// What n elements of GGUF type `number` stand for. Every value is exact: a block's terms span at
/// most 52 bits. Throws std::invalid_argument for a type that is not described here.
std::vector<double> plain_values(std::uint32_t number, const std::byte* bytes, std::size_t n);

}  // namespace leasehold::testing
