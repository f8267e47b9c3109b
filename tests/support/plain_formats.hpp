/// A second implementation of the block formats, in doubles and from their published description,
/// without code from kernels/quant. Tests compare the dequantisers with it.
///
/// Source: the GGUF specification and ggml's documentation of its block types. Each function reads
/// a block front to back, as the description does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace leasehold::testing {

/// The values of n elements of GGUF type `number`. Every value is exact: the terms of a block span
/// at most 52 bits. Throws std::invalid_argument for a type that is not implemented here.
std::vector<double> plain_values(std::uint32_t number, const std::byte* bytes, std::size_t n);

}  // namespace leasehold::testing
