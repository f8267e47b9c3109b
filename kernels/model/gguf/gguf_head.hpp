/// The metadata and tensors of a GGUF file, read from a copy of its first bytes. The file is not
/// mapped, so that truncating it cannot raise SIGBUS.
///
/// Lifetime: the bytes outlive it. Threads: any number at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "common/result.hpp"
#include "kernels/model/gguf/gguf_directory.hpp"

namespace leasehold {

class GgufHead {
 public:
  /// `head`: the first bytes of a file of `file_bytes` bytes, up to the data of the tensors at
  /// least. `path` is for messages. Errors: those of read_gguf_directory.
  static Result<GgufHead> read(std::span<const std::byte> head, std::uint64_t file_bytes,
                               const std::string& path);

  /// In file order.
  std::span<const GgufTensor> tensors() const { return directory_.tensors; }
  bool has(std::string_view key) const { return directory_.metadata.contains(key); }
  /// As GgufFile::get_or. T: uint32_t, float, string.
  template <class T>
  Result<T> get_or(std::string_view key, T fallback) const;

 private:
  GgufHead(std::span<const std::byte> head, std::string path, GgufDirectory directory)
      : head_(head), path_(std::move(path)), directory_(std::move(directory)) {}

  std::span<const std::byte> head_;
  std::string path_;
  GgufDirectory directory_;
};

}  // namespace leasehold
