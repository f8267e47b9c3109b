/// The directory of a safetensors file. Pure.
///
/// Source: the format of safetensors: 8 bytes with the length of a JSON object, little-endian; the
/// object, which gives each tensor's dtype, shape and data_offsets; the data, without holes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "kernels/quant/tensor_type.hpp"

namespace leasehold {

/// The size of the length before the JSON object.
inline constexpr std::uint64_t kSafetensorsPrefixBytes = sizeof(std::uint64_t);
/// The longest JSON object that this build reads.
inline constexpr std::uint64_t kMaxSafetensorsHeaderBytes = 1 << 20;

/// A matrix. Tensors of other shapes are refused.
struct SafetensorsTensor {
  std::string name;
  TensorType type;
  std::uint64_t rows;
  std::uint64_t columns;
  std::uint64_t offset;  ///< Byte in the file.
};

/// Checks the length against the limit and the size of the file.
/// Errors: FileCorrupt.
Result<void> check_safetensors_header_size(std::uint64_t header_bytes, std::uint64_t file_bytes,
                                           std::string_view path);

/// Reads the JSON object of a file of `file_bytes` bytes. The tensors cover the data without
/// overlaps and holes. `path` is for messages. Errors: FileCorrupt; UnsupportedModel for another
/// dtype than F32, F16 and BF16 and for tensors that are not matrices, naming the tensor.
Result<std::vector<SafetensorsTensor>> read_safetensors(std::string_view header,
                                                        std::uint64_t file_bytes,
                                                        std::string_view path);

}  // namespace leasehold
