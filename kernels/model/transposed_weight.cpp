#include "kernels/model/transposed_weight.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/quant/dequantize.hpp"

namespace leasehold {
namespace {

/// A matrix as the file has it, [n_rows, n_columns], in elements of `element_bytes`.
struct FileMatrix {
  std::vector<std::byte> bytes;
  std::uint64_t n_columns;
  std::uint64_t element_bytes;

  const std::byte* element(std::uint64_t row, std::uint64_t column) const {
    return bytes.data() + (row * n_columns + column) * element_bytes;
  }
};

/// Turns rows of blocks into floats.
std::vector<std::byte> as_floats(TensorType type, const std::vector<std::byte>& rows,
                                 std::uint64_t n_rows, std::uint64_t n_columns) {
  std::vector<float> floats(n_rows * n_columns);
  for (std::uint64_t row = 0; row < n_rows; ++row)
    dequantize_row(type, rows.data() + row * row_size_bytes(type, n_columns),
                   floats.data() + row * n_columns, n_columns);
  const auto bytes = std::as_bytes(std::span(floats));
  return {bytes.begin(), bytes.end()};
}

Result<FileMatrix> read_matrix(const GgufFile& file, const WeightTensor& weight,
                               const WeightPiece& piece) {
  const GgufTensor& tensor = *file.find(piece.tensor);
  const std::uint64_t n_columns = tensor.columns();
  const std::uint64_t row_bytes = row_size_bytes(tensor.type, n_columns);
  std::vector<std::byte> bytes(piece.rows * row_bytes);
  TRY(file.read(tensor, piece.first_row * row_bytes, bytes));
  if (tensor.type != weight.type) bytes = as_floats(tensor.type, bytes, piece.rows, n_columns);
  return FileMatrix{std::move(bytes), n_columns, row_size_bytes(weight.type, 1)};
}

}  // namespace

Result<void> read_transposed(const GgufFile& file, const WeightTensor& weight, std::uint64_t from,
                             std::span<std::byte> destination) {
  const std::uint64_t row_bytes = row_size_bytes(weight.type, weight.columns);
  const std::uint64_t rows_per_matrix = weight.rows / weight.pieces.size();
  const std::uint64_t first = from / row_bytes;
  const std::uint64_t end = (from + destination.size() + row_bytes - 1) / row_bytes;
  std::vector<std::byte> rows((end - first) * row_bytes);
  std::byte* out = rows.data();
  for (std::uint64_t row = first; row < end;) {
    const std::uint64_t number = row / rows_per_matrix;
    const FileMatrix matrix = TRY(read_matrix(file, weight, weight.pieces[number]));
    const std::uint64_t begin = number * rows_per_matrix;
    for (; row < std::min(end, begin + rows_per_matrix); ++row)
      for (std::uint32_t column = 0; column < weight.columns; ++column, out += matrix.element_bytes)
        std::memcpy(out, matrix.element(column, row - begin), matrix.element_bytes);
  }
  std::memcpy(destination.data(), rows.data() + (from - first * row_bytes), destination.size());
  return {};
}

}  // namespace leasehold
