/// The tensors of a model with their sizes and offsets in the file. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/make_model/model_shape.hpp"

namespace leasehold::make_model {

/// Distribution of the weights of a tensor.
enum class Fill : std::uint8_t {
  Matrix,   // mean 0, deviation 1 / sqrt(columns), so that a product has the magnitude of its input
  Gain,     // near 1, like a trained norm
  Bias,     // near 0
  Gate,     // like Matrix, but a vector
  Divisor,  // about 2
  Decay,    // about -1
};

struct PlannedTensor {
  std::string name;
  std::uint64_t rows = 1;  // sum over all matrices
  std::uint64_t columns = 0;
  TensorType type = TensorType::F32;
  Fill fill = Fill::Matrix;
  std::uint64_t matrices = 1;  // all with the same number of rows
  std::uint64_t offset = 0;    // in the tensor data of its file, a multiple of kAlignment
  std::uint64_t number = 0;    // index of the tensor in the whole model

  std::uint64_t size_bytes() const { return rows * row_size_bytes(type, columns); }
};

inline constexpr std::uint64_t kAlignment = 32;

constexpr std::uint64_t align_up(std::uint64_t size) {
  return (size + kAlignment - 1) / kAlignment * kAlignment;
}

/// All tensors in file order. Norms and biases are F32, whatever the type of the matrices.
///
/// A mix is llama.cpp's Q4_K_M: Q6_K for the output layer, and for the values and the down
/// projection of about half the layers; Q4_K for the rest. Rows that are not made of blocks
/// of 256 have Q5_0 instead of Q4_K, and Q8_0 instead of Q6_K.
std::vector<PlannedTensor> plan_tensors(const ModelRequest& request);

/// The tensors that a file has which joins the queries, keys and values of a layer, and their
/// biases (kernels/model/file_rows.hpp). The bytes of the file stay the same. Tensors are joined
/// only if they lie one directly behind the other and have one type.
std::vector<PlannedTensor> with_joined_heads(const std::vector<PlannedTensor>& plan);

/// Divides a plan into `n_parts` files of about the same size and recomputes the offsets. A part
/// may be empty.
std::vector<std::vector<PlannedTensor>> cut_plan(std::vector<PlannedTensor> plan,
                                                 std::uint32_t n_parts);

/// Size of the tensor data of one file, with padding.
std::uint64_t data_size_bytes(const std::vector<PlannedTensor>& plan);

}  // namespace leasehold::make_model
