#include "worker/adapter/adapter_matrix.hpp"

#include <algorithm>
#include <cstring>

#include "common/expects.hpp"
#include "kernels/quant/dequantize.hpp"

namespace leasehold {
namespace {

/// True if a value has all bits of `exponent`. Compares as many values at once as fit in 64 bits: a
/// lane is zero if subtracting 1 from it changes its highest bit from 0 to 1.
template <class Word>
bool has_exponent(std::span<const std::byte> values, Word exponent) {
  constexpr std::uint64_t kOnes = ~std::uint64_t{0} / static_cast<Word>(~Word{0});
  constexpr std::uint64_t kHighest = kOnes << (8 * sizeof(Word) - 1);
  const std::uint64_t exponents = kOnes * exponent;
  std::uint64_t found = 0;
  for (std::size_t at = 0; at < values.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t lanes = 0;
    std::memcpy(&lanes, values.data() + at, std::min(sizeof lanes, values.size() - at));
    const std::uint64_t missing = ~lanes & exponents;
    found |= (missing - kOnes) & ~missing & kHighest;
  }
  return found != 0;
}

template <class Word>
void transpose(const std::byte* matrix, std::uint64_t n_rows, std::uint64_t n_columns,
               std::uint32_t head, std::byte* out) {
  for (std::uint64_t row = 0; row < n_rows; ++row) {
    const std::byte* source = matrix + checkpoint_row(row, head) * n_columns * sizeof(Word);
    for (std::uint64_t column = 0; column < n_columns; ++column)
      std::memcpy(out + (column * n_rows + row) * sizeof(Word), source + column * sizeof(Word),
                  sizeof(Word));
  }
}

}  // namespace

std::uint64_t checkpoint_row(std::uint64_t row, std::uint32_t head) {
  if (head == 0) return row;
  const std::uint64_t in_head = row % head;
  return row - in_head + in_head % 2 * (head / 2) + in_head / 2;
}

std::vector<std::byte> widened(const FileMatrix& matrix, std::vector<std::byte> bytes,
                               TensorType type) {
  if (matrix.type == type) return bytes;
  expects(type == TensorType::F32, "matrices are only widened to F32");
  std::vector<float> row(matrix.columns);
  std::vector<std::byte> out(matrix.rows * matrix.columns * sizeof(float));
  for (std::uint64_t r = 0; r < matrix.rows; ++r) {
    dequantize_row(matrix.type, bytes.data() + r * row_size_bytes(matrix.type, matrix.columns),
                   row.data(), row.size());
    std::memcpy(out.data() + r * row.size() * sizeof(float), row.data(),
                row.size() * sizeof(float));
  }
  return out;
}

std::vector<std::byte> transposed(std::span<const std::byte> matrix, std::uint64_t n_rows,
                                  std::uint64_t n_columns, std::uint64_t element_bytes,
                                  std::uint32_t head) {
  expects(matrix.size() == n_rows * n_columns * element_bytes, "the matrix is whole");
  std::vector<std::byte> out(matrix.size());
  if (element_bytes == sizeof(std::uint16_t))
    transpose<std::uint16_t>(matrix.data(), n_rows, n_columns, head, out.data());
  else
    transpose<std::uint32_t>(matrix.data(), n_rows, n_columns, head, out.data());
  return out;
}

bool is_finite(TensorType type, std::span<const std::byte> values) {
  switch (type) {
    case TensorType::F32:
      return !has_exponent<std::uint32_t>(values, 0x7F80'0000U);
    case TensorType::F16:
      return !has_exponent<std::uint16_t>(values, 0x7C00U);
    case TensorType::BF16:
      return !has_exponent<std::uint16_t>(values, 0x7F80U);
    default:
      contract_violated("expects", "the matrix has a type of kernels",
                        std::source_location::current());
  }
}

}  // namespace leasehold
