/// Writes a model file, one batch of rows at a time. Memory use grows only with the vocabulary.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "common/result.hpp"
#include "tools/make_model/model_shape.hpp"

namespace leasehold::make_model {

/// Called after every batch.
using OnProgress = std::function<void(std::uint64_t done_bytes, std::uint64_t total_bytes)>;

/// The path of part `number`, from 0: `path` itself for one part, else "m-00001-of-00003.gguf" for
/// "m.gguf".
std::string part_path(const std::string& path, std::uint32_t number, std::uint32_t n_parts);

/// Writes all parts and returns their total size in bytes. After an error each part is either
/// complete or unchanged. Threads: any. Errors: BadRequest for an invalid request, and those of
/// PartialFile.
Result<std::uint64_t> write_model(const ModelRequest& request, const std::string& path,
                                  const OnProgress& on_progress);

}  // namespace leasehold::make_model
