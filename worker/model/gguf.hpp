/// A GGUF model file, open for reading.
///
/// The file is mapped read-only; its directory is checked once, in `open`. Its size is looked at
/// only then: a file that somebody truncates afterwards kills whoever touches the missing pages of
/// the mapping (SIGBUS). So tensors are loaded with `read`, which copies by pread and meets a
/// shorter file as an error; `data` is for tools and tests. Metadata is decoded from the mapping,
/// right after opening.
///
/// Lifetime: spans and pointers live as long as the GgufFile. It can be moved, not copied.
/// Threads: any number may read.
/// Errors: FileNotFound, PermissionDenied, SystemError for the file as such; FileCorrupt for a file
/// that breaks the format or contradicts itself; UnsupportedModel for one that is well-formed but
/// nothing this build computes with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "common/unique_fd.hpp"
#include "worker/model/gguf_directory.hpp"

namespace leasehold {

/// The same values mean the same bytes, as long as nobody rewrites a file and sets its time back.
struct FileIdentity {
  std::uint64_t device;
  std::uint64_t inode;
  std::uint64_t size_bytes;
  std::int64_t mtime_ns;

  /// Of the file under this path now. Errors: FileNotFound, SystemError, FileCorrupt for what is
  /// no regular file.
  static Result<FileIdentity> of_path(const std::string& path);

  bool operator==(const FileIdentity&) const = default;
};

class GgufFile {
 public:
  static Result<GgufFile> open(const std::string& path);

  const std::string& path() const { return path_; }
  const FileIdentity& identity() const { return identity_; }

  /// In file order.
  std::span<const GgufTensor> tensors() const { return directory_.tensors; }

  /// Null when there is no tensor of that name.
  const GgufTensor* find(std::string_view name) const;

  /// The tensor's bytes in the mapping.
  std::span<const std::byte> data(const GgufTensor& tensor) const;

  /// Copies the tensor's bytes; `destination` has exactly its size.
  /// Errors: FileCorrupt when the file has become shorter; SystemError when it cannot be read.
  Result<void> read(const GgufTensor& tensor, std::span<std::byte> destination) const;

  /// FileCorrupt when the file is no longer the one that was opened: what was read since is
  /// worth nothing.
  Result<void> check_unchanged() const;

  bool has(std::string_view key) const;

  /// Elements of a metadata array, without decoding it.
  /// Errors: FileCorrupt when there is no such key; UnsupportedModel when it is no array.
  Result<std::uint64_t> length(std::string_view key) const;

  /// A metadata value. T: uint32_t, uint64_t (any integer in range), float, bool, string,
  /// vector<string>, vector<float>, vector<int32_t>.
  /// Errors: FileCorrupt when there is no such key; UnsupportedModel when it has another type.
  template <class T>
  Result<T> get(std::string_view key) const;

  /// The same, with `fallback` for a key that is not there.
  template <class T>
  Result<T> get_or(std::string_view key, T fallback) const {
    if (!has(key)) return fallback;
    return get<T>(key);
  }

 private:
  struct Unmap {
    std::size_t size_bytes;
    void operator()(const std::byte* start) const;
  };

  GgufFile() = default;
  Result<GgufValue> value(std::string_view key) const;
  std::span<const std::byte> bytes() const { return {mapping_.get(), identity_.size_bytes}; }

  std::string path_;
  UniqueFd fd_;
  FileIdentity identity_{};
  std::unique_ptr<const std::byte, Unmap> mapping_;
  GgufDirectory directory_{};
};

template <>
Result<std::uint64_t> GgufFile::get(std::string_view key) const;
template <>
Result<std::uint32_t> GgufFile::get(std::string_view key) const;
template <>
Result<float> GgufFile::get(std::string_view key) const;
template <>
Result<bool> GgufFile::get(std::string_view key) const;
template <>
Result<std::string> GgufFile::get(std::string_view key) const;
template <>
Result<std::vector<std::string>> GgufFile::get(std::string_view key) const;
template <>
Result<std::vector<float>> GgufFile::get(std::string_view key) const;
template <>
Result<std::vector<std::int32_t>> GgufFile::get(std::string_view key) const;

}  // namespace leasehold
