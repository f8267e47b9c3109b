/// The part of a GGUF version 3 file before the tensor data. Pure.
///
/// Source: the GGUF specification: magic, version, counts, key and value pairs, tensor
/// descriptions, padding to the alignment. Everything little-endian.
#pragma once

#include <cstddef>
#include <vector>

#include "tools/make_model/tensor_plan.hpp"

namespace leasehold::make_model {

/// Position of one file among the files of a model.
struct PartNumber {
  std::uint32_t number = 0;
  std::uint32_t n_parts = 1;
  std::uint64_t n_tensors = 0;  ///< Number of tensors in all parts.
};

/// The header of one part, padded to kAlignment; the tensor data follows. `plan` holds the tensors
/// of this part. Only the first part has the model's metadata, which may take a few megabytes.
std::vector<std::byte> gguf_header(const ModelRequest& request,
                                   const std::vector<PlannedTensor>& plan,
                                   const PartNumber& part = {});

}  // namespace leasehold::make_model
