/// The directory of a GGUF file: metadata and tensors, checked before any value is used.
///
/// Source: the GGUF specification (ggml, docs/gguf.md), versions 2 and 3, little-endian. Version 2
/// differs from 3 only in that 3 allows big-endian files, which are refused here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "kernels/quant/tensor_type.hpp"

namespace leasehold {

/// Types of metadata values; numbers are GGUF's own.
enum class GgufType : std::uint32_t {
  Uint8 = 0,
  Int8 = 1,
  Uint16 = 2,
  Int16 = 3,
  Uint32 = 4,
  Int32 = 5,
  Float32 = 6,
  Bool = 7,
  String = 8,
  Array = 9,
  Uint64 = 10,
  Int64 = 11,
  Float64 = 12,
};

std::string_view name(GgufType type);

/// The extent of one metadata value in the file. Values are not stored, so the memory of a
/// directory is proportional to its number of keys, whatever a corrupt count claims.
struct GgufValue {
  GgufType type;
  GgufType element_type;  ///< Type of an array's elements; otherwise equal to `type`.
  std::uint64_t count;    ///< Number of an array's elements; otherwise 1.
  std::uint64_t offset;   ///< Byte in the file where the value (or the first element) starts.
};

/// One tensor. `columns` is the contiguous dimension; everything else is counted in rows.
struct GgufTensor {
  std::string name;
  TensorType type;
  std::vector<std::uint64_t> shape;  ///< [columns, …], one to four dimensions, none of them 0.
  std::uint64_t offset;              ///< Byte in the file where the data starts.
  std::uint64_t size_bytes;
  std::uint32_t part = 0;  ///< Which file of a split model has the data.

  std::uint64_t columns() const { return shape.front(); }
  std::uint64_t rows() const;
};

struct GgufDirectory {
  std::map<std::string, GgufValue, std::less<>> metadata;
  std::map<std::string, std::size_t, std::less<>> tensor_index;
  std::vector<GgufTensor> tensors;  ///< In file order.
};

/// Reads and checks everything before the tensor data: every count, length, name, type, dimension
/// and offset. Checks that the data of each tensor is aligned, inside the file, and does not
/// overlap another tensor. `file` is the whole file; `path` is for messages.
/// Errors: FileCorrupt for bytes that break the format, with their offset; UnsupportedModel for a
/// well-formed file with a version, tensor type or metadata this build does not compute with.
Result<GgufDirectory> read_gguf_directory(std::span<const std::byte> file, std::string_view path);

}  // namespace leasehold
