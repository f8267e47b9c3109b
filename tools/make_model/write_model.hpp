/// Writes the whole file, a batch of rows at a time: memory does not grow with the model, except
/// for its vocabulary.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "common/result.hpp"
#include "tools/make_model/model_shape.hpp"

namespace leasehold::make_model {

/// Called after every batch.
using OnProgress = std::function<void(std::uint64_t done_bytes, std::uint64_t total_bytes)>;

/// The size of the file, in bytes. `path` holds a complete model or is as it was before.
/// Errors: BadRequest for a shape that cannot be, and those of PartialFile.
Result<std::uint64_t> write_model(const ModelRequest& request, const std::string& path,
                                  const OnProgress& on_progress);

}  // namespace leasehold::make_model
