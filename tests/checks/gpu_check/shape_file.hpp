/// A model file with metadata only; the tensor data is a hole of the right length.
///
/// Errors: SystemError, DiskFull.
#pragma once

#include <string>

#include "tools/make_model/model_shape.hpp"

namespace leasehold::gpu_check {

/// Formats of the matrices. Q4KM is llama.cpp's Q4_K_M: mostly Q4_K, but Q6_K for the output and,
/// in half of the layers, for attn_v and ffn_down.
enum class Mix : std::uint8_t { Q4KM, F16, Q8 };

std::string_view name(Mix mix);

struct ShapeFile {
  std::string path;
  std::uint64_t read_each_step_bytes = 0;  ///< Weights that a decode step reads.
  std::uint64_t matrix_elements = 0;  ///< Elements per prefilled row, without the output matrix.
};

Result<ShapeFile> write_shape(const make_model::ModelShape& shape, Mix mix,
                              const std::string& path);

}  // namespace leasehold::gpu_check
