/// The part of a GGUF version 3 file before the tensor data. Pure.
///
/// Source: the GGUF specification: magic, version, counts, key and value pairs, tensor
/// descriptions, padding to the alignment. Everything little-endian.
#pragma once

#include <cstddef>
#include <vector>

#include "tools/make_model/tensor_plan.hpp"

namespace leasehold::make_model {

/// Ends on a multiple of kAlignment: the tensor data follows at once. A few megabytes for the
/// largest vocabulary.
std::vector<std::byte> gguf_header(const ModelRequest& request,
                                   const std::vector<PlannedTensor>& plan);

}  // namespace leasehold::make_model
