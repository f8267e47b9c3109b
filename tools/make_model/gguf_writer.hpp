/// Builds the header of a GGUF version 3 file. Pure.
///
/// Source: the GGUF specification.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/model/gguf/gguf_directory.hpp"
#include "tools/make_model/tensor_plan.hpp"

namespace leasehold::make_model {

/// Appends bytes in file order.
class ByteSink {
 public:
  template <class Number>
  void number(Number value) {
    raw(std::as_bytes(std::span(&value, 1)));
  }
  void raw(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void string(std::string_view text) {
    number(std::uint64_t{text.size()});
    raw(std::as_bytes(std::span(text)));
  }
  std::span<const std::byte> bytes() const { return bytes_; }
  std::vector<std::byte> take_aligned() {
    bytes_.resize(align_up(bytes_.size()));
    return std::move(bytes_);
  }

 private:
  std::vector<std::byte> bytes_;
};

/// The key and value pairs, with their count.
class Metadata {
 public:
  void add(std::string_view key, std::string_view text) {
    begin(key, GgufType::String);
    sink_.string(text);
  }
  void add(std::string_view key, std::uint32_t value) {
    begin(key, GgufType::Uint32);
    sink_.number(value);
  }
  void add(std::string_view key, float value) {
    begin(key, GgufType::Float32);
    sink_.number(value);
  }
  void add(std::string_view key, bool value) {
    begin(key, GgufType::Bool);
    sink_.number(static_cast<std::uint8_t>(value));
  }
  /// Calls `put(sink, i)` for each of `count` elements.
  template <class Put>
  void add_list(std::string_view key, GgufType kind, std::uint32_t count, Put put) {
    begin(key, GgufType::Array);
    sink_.number(kind);
    sink_.number(std::uint64_t{count});
    for (std::uint32_t i = 0; i < count; ++i) put(sink_, i);
  }

  std::uint64_t count() const { return count_; }
  std::span<const std::byte> bytes() const { return sink_.bytes(); }

 private:
  void begin(std::string_view key, GgufType kind) {
    ++count_;
    sink_.string(key);
    sink_.number(kind);
  }

  ByteSink sink_;
  std::uint64_t count_ = 0;
};

/// The header of a file with this metadata and these tensors, padded to kAlignment; the tensor data
/// follows.
std::vector<std::byte> assemble_header(const Metadata& metadata,
                                       const std::vector<PlannedTensor>& plan);

}  // namespace leasehold::make_model
