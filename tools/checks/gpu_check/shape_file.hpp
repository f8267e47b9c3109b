/// A model file of which only the beginning is written: what a loader reads to know the model. The
/// rest is a hole of the right length.
///
/// Errors: SystemError, DiskFull.
#pragma once

#include <string>

#include "tools/make_model/model_shape.hpp"

namespace leasehold::gpu_check {

/// How matrices are stored. Q4KM: as files of that name are, mostly Q4_K, the output and half of
/// the layers' values and way down in Q6_K.
enum class Mix : std::uint8_t { Q4KM, F16, Q8 };

std::string_view name(Mix mix);

struct ShapeFile {
  std::string path;
  std::uint64_t read_each_step_bytes = 0;  ///< Weights that a decoding step reads.
  std::uint64_t matrix_elements = 0;       ///< Of those, without the output's: per prefilled row.
};

Result<ShapeFile> write_shape(const make_model::ModelShape& shape, Mix mix,
                              const std::string& path);

}  // namespace leasehold::gpu_check
