/// The list of tensors a model of a given shape has, with the size and the place of each in the
/// file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/make_model/model_shape.hpp"

namespace leasehold::make_model {

/// What the numbers of a tensor look like.
enum class Fill : std::uint8_t {
  Matrix,   // normal, mean 0, deviation 1 / sqrt(columns): a product keeps the size of its input
  Gain,     // near 1, as a trained norm is
  Bias,     // near 0
  Gate,     // a matrix of one row, which is a vector
  Divisor,  // about 2
};

struct PlannedTensor {
  std::string name;
  std::uint64_t rows = 1;  // of all matrices together
  std::uint64_t columns = 0;
  TensorType type = TensorType::F32;
  Fill fill = Fill::Matrix;
  std::uint64_t matrices = 1;  // of as many rows each
  std::uint64_t offset = 0;    // from the start of its file's tensor data, a multiple of kAlignment
  std::uint64_t number = 0;    // in the whole model

  std::uint64_t size_bytes() const { return rows * row_size_bytes(type, columns); }
};

inline constexpr std::uint64_t kAlignment = 32;

constexpr std::uint64_t align_up(std::uint64_t size) {
  return (size + kAlignment - 1) / kAlignment * kAlignment;
}

/// In file order. Norms and biases are F32 whatever the type of the matrices.
std::vector<PlannedTensor> plan_tensors(const ModelRequest& request);

/// The same in files of about the same size, each with offsets of its own; all in one for
/// n_parts 1. A part without a tensor is left empty.
std::vector<std::vector<PlannedTensor>> cut_plan(std::vector<PlannedTensor> plan,
                                                 std::uint32_t n_parts);

/// Bytes of all tensors of one file with their padding.
std::uint64_t data_size_bytes(const std::vector<PlannedTensor>& plan);

}  // namespace leasehold::make_model
