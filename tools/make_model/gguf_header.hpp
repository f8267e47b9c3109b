/// The part of a GGUF version 3 file before the tensor data. Pure.
///
/// Source: the GGUF specification: magic, version, counts, key and value pairs, tensor
/// descriptions, padding to the alignment. Everything little-endian.
#pragma once

#include <cstddef>
#include <vector>

#include "tools/make_model/tensor_plan.hpp"

namespace leasehold::make_model {

/// Which file of a model this is.
struct PartNumber {
  std::uint32_t number = 0;
  std::uint32_t n_parts = 1;
  std::uint64_t n_tensors = 0;  ///< In all parts.
};

/// `plan` is this part's. Only the first part describes the model. Ends on a multiple of
/// kAlignment: the tensor data follows at once. A few megabytes for the largest vocabulary.
std::vector<std::byte> gguf_header(const ModelRequest& request,
                                   const std::vector<PlannedTensor>& plan,
                                   const PartNumber& part = {});

}  // namespace leasehold::make_model
