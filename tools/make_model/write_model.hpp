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

/// Of part `number` of a model that was asked for as `path`: "m.gguf" is that itself, or
/// "m-00001-of-00003.gguf" and so on.
std::string part_path(const std::string& path, std::uint32_t number, std::uint32_t n_parts);

/// The size of the file, or of all parts, in bytes. Each holds what it should or is as it was
/// before.
/// Errors: BadRequest for a shape that cannot be, and those of PartialFile.
Result<std::uint64_t> write_model(const ModelRequest& request, const std::string& path,
                                  const OnProgress& on_progress);

}  // namespace leasehold::make_model
