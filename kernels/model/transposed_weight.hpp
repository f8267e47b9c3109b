/// Reads weights that a file has transposed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/model/weights_layout.hpp"

namespace leasehold {

/// Fills `destination` with bytes of the rows of a transposed weight, from byte `from` on. The
/// elements are those of the file, or, if its type has blocks of several elements, the floats that
/// they mean; so no element is rounded. One matrix of the weight is in memory at a time.
/// Precondition: the layout was made for this file. Errors: those of GgufFile::read.
Result<void> read_transposed(const GgufFile& file, const WeightTensor& weight, std::uint64_t from,
                             std::span<std::byte> destination);

}  // namespace leasehold
