/// Brings a matrix of an adapter into the form that kernels read. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "worker/adapter/adapter_source.hpp"

namespace leasehold {

/// The row of a checkpoint that is row `row` of the model, in heads of `head` rows: neighbours
/// 2i and 2i + 1 of a head are rows i and head / 2 + i. `head` is even; 0: the same row. Source:
/// LlamaModel.permute of llama.cpp's converters.
std::uint64_t checkpoint_row(std::uint64_t row, std::uint32_t head);

/// Changes the type without rounding. `bytes` is the whole matrix as the file has it; `type` is its
/// type or F32.
std::vector<std::byte> widened(const FileMatrix& matrix, std::vector<std::byte> bytes,
                               TensorType type);

/// The transpose of `matrix` [n_rows, n_columns], whose row r is row checkpoint_row(r, head) of the
/// source. Elements have 2 or 4 bytes.
std::vector<std::byte> transposed(std::span<const std::byte> matrix, std::uint64_t n_rows,
                                  std::uint64_t n_columns, std::uint64_t element_bytes,
                                  std::uint32_t head);

/// True if no value is infinite or not a number. `type`: F32, F16 or BF16.
bool is_finite(TensorType type, std::span<const std::byte> values);

}  // namespace leasehold
