#include "kernels/quant/row_group.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/quant/block_bytes.hpp"

namespace leasehold {
namespace {

constexpr std::uint32_t kQuad = 4;
constexpr std::size_t kScalesBytes = kGroupRows * kHalfBytes;

std::size_t block_bytes(TensorType type) {
  return kGroupRows * std::size_t{block_shape(type).size_bytes};
}

/// The stored byte of bytes 4j … 4j + 3 of a row's block.
std::size_t byte_index(std::uint32_t row, std::uint32_t i) {
  return kScalesBytes + (i / kQuad * kGroupRows + row) * kQuad + i % kQuad;
}

struct Elements {
  std::int32_t at[kInt8Block];
};

Elements elements_of(TensorType type, const std::byte* block, std::uint32_t row) {
  Elements elements;
  for (std::uint32_t i = 0; i < kInt8Block; ++i) {
    if (type == TensorType::Q8_0) {
      elements.at[i] = read_byte(block + byte_index(row, i)) - group_offset(type);
    } else {
      const int both = read_byte(block + byte_index(row, i % 16));
      elements.at[i] = (i < 16 ? both & 15 : both >> 4) - group_offset(type);
    }
  }
  return elements;
}

float scale_of(const std::byte* block, std::uint32_t row) {
  return read_half(block + row * kHalfBytes);
}

float dot_row(TensorType type, const std::byte* group, std::uint32_t row, std::uint32_t n_blocks,
              const RoundedRow& x) {
  const std::uint32_t per_chunk = int8_chunk_blocks(n_blocks);
  float dot = 0;
  for (std::uint32_t begin = 0; begin < n_blocks; begin += per_chunk) {
    float chunk = 0;
    for (std::uint32_t b = begin; b < std::min(begin + per_chunk, n_blocks); ++b) {
      const std::byte* block = group + b * block_bytes(type);
      const Elements w = elements_of(type, block, row);
      std::int32_t sum = 0;
      for (std::uint32_t i = 0; i < kInt8Block; ++i) sum += w.at[i] * x.q[b * kInt8Block + i];
      chunk = std::fma(scale_of(block, row) * x.scale[b], static_cast<float>(sum), chunk);
    }
    dot = begin == 0 ? chunk : dot + chunk;
  }
  return dot;
}

}  // namespace

void interleave_rows(TensorType type, const std::byte* rows, std::uint32_t n_rows,
                     std::uint32_t n_in, std::byte* group) {
  const std::size_t row_bytes = row_size_bytes(type, n_in);
  const std::size_t source_block = block_shape(type).size_bytes;
  // Q8_0 has int8 in the file and offset numbers in a group; Q4_0 has offset numbers in both.
  const std::uint32_t flip = type == TensorType::Q8_0 ? 0x80808080 : 0;
  if (n_rows < kGroupRows) std::memset(group, 0, row_group_bytes(type, n_in));
  for (std::uint32_t row = 0; row < n_rows; ++row) {
    for (std::size_t b = 0; b < n_in / kInt8Block; ++b) {
      const std::byte* from = rows + row * row_bytes + b * source_block;
      std::byte* to = group + b * block_bytes(type);
      std::memcpy(to + row * kHalfBytes, from, kHalfBytes);
      for (std::uint32_t i = 0; i < source_block - kHalfBytes; i += kQuad) {
        std::uint32_t quad;
        std::memcpy(&quad, from + kHalfBytes + i, kQuad);
        quad ^= flip;
        std::memcpy(to + byte_index(row, i), &quad, kQuad);
      }
    }
  }
}

void dequantize_group_row(TensorType type, const std::byte* group, std::uint32_t row, float* out,
                          std::uint32_t n_in) {
  for (std::size_t b = 0; b < n_in / kInt8Block; ++b) {
    const std::byte* block = group + b * block_bytes(type);
    const Elements w = elements_of(type, block, row);
    const float d = scale_of(block, row);
    for (std::uint32_t i = 0; i < kInt8Block; ++i)
      out[b * kInt8Block + i] = d * static_cast<float>(w.at[i]);
  }
}

void dot_group_int8(TensorType type, const std::byte* group, std::uint32_t n_in,
                    const RoundedRow* x, std::uint32_t n_rows, float* out) {
  for (std::uint32_t r = 0; r < n_rows; ++r)
    for (std::uint32_t row = 0; row < kGroupRows; ++row)
      out[r * kGroupRows + row] = dot_row(type, group, row, n_in / kInt8Block, x[r]);
}

}  // namespace leasehold
