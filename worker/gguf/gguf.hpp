/// A GGUF model file, open for reading; or several that together hold one model.
///
/// A split model's files say so in their metadata (split.count, split.no) and are named
/// "NAME-00001-of-0000N.gguf"; whichever is opened finds the others beside it. The first holds the
/// metadata, each of them tensors, and to a reader they are one file.
///
/// Each file is mapped read-only; its directory is checked once, in `open`. Its size is looked at
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
#include "worker/gguf/gguf_directory.hpp"

namespace leasehold {

/// The same values mean the same bytes, as long as nobody rewrites a file and sets its time back.
/// Of a split model: device and size of all files, and in the place of inode and time a hash of all
/// files' inodes, sizes and times.
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

  /// Of a split model: the first file's.
  const std::string& path() const { return path_; }
  const FileIdentity& identity() const { return identity_; }
  /// Of what lies under the same paths now.
  Result<FileIdentity> identity_now() const;

  /// In file order.
  std::span<const GgufTensor> tensors() const { return directory_.tensors; }

  /// Null when there is no tensor of that name.
  const GgufTensor* find(std::string_view name) const;

  /// The tensor's bytes in the mapping.
  std::span<const std::byte> data(const GgufTensor& tensor) const;

  /// Copies the tensor's bytes from byte `from` on; it has as many as `destination` takes.
  /// Errors: FileCorrupt when the file has become shorter; SystemError when it cannot be read.
  Result<void> read(const GgufTensor& tensor, std::uint64_t from,
                    std::span<std::byte> destination) const;

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
  static Result<GgufFile> open_single(const std::string& path);
  static Result<GgufFile> open_split(GgufFile one, std::uint32_t n_parts);
  Result<void> add_part(GgufFile part);
  const GgufFile& part(std::uint32_t number) const {
    return number == 0 ? *this : other_parts_[number - 1];
  }
  Result<GgufValue> value(std::string_view key) const;
  std::span<const std::byte> bytes() const { return {mapping_.get(), mapped_.size_bytes}; }

  std::string path_;
  UniqueFd fd_;
  FileIdentity mapped_{};    // of this file
  FileIdentity identity_{};  // of the whole model
  std::unique_ptr<const std::byte, Unmap> mapping_;
  GgufDirectory directory_{};          // tensors of all parts, metadata of this one
  std::vector<GgufFile> other_parts_;  // of a split model: parts 1 …
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
