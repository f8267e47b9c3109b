/// A GGUF model file open for reading, or several files that together contain one model.
///
/// The files of a split model have metadata split.count and split.no and are named
/// "NAME-00001-of-0000N.gguf". Opening any of them finds the others in the same folder. The first
/// file has the metadata, each file has tensors, and readers see one file.
///
/// `open` maps each file read-only and checks its directory and size. If the file is truncated
/// later, access to the missing pages of the mapping raises SIGBUS. Loaders therefore use `read`,
/// which copies with pread and returns an error for a shorter file; `data` is for tools and tests.
/// Metadata is decoded from the mapping right after opening.
///
/// Lifetime: spans and pointers live as long as the GgufFile. It can be moved, not copied.
/// Threads: any number at a time.
/// Errors: FileNotFound, PermissionDenied, SystemError for the file itself; BadRequest for a
/// directory; FileCorrupt for a file that breaks the format or is inconsistent; UnsupportedModel
/// for a well-formed file that this build cannot compute with.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"
#include "kernels/model/gguf/gguf_directory.hpp"

namespace leasehold {

/// Equal values mean equal bytes. Different values may also mean equal bytes: of a copy, or of a
/// file that was renamed, linked or given other permissions. The identity of a split model has the
/// device, the total size, and, in place of inode and times, a hash of all files' inodes, sizes and
/// times.
struct FileIdentity {
  std::uint64_t device;
  std::uint64_t inode;
  std::uint64_t size_bytes;
  std::int64_t mtime_ns;
  std::int64_t ctime_ns = 0;  ///< Last change of bytes or attributes; cannot be set back.

  /// The time of the file's last change, for callers that compare only one time.
  std::int64_t changed_ns() const { return std::max(mtime_ns, ctime_ns); }

  /// The identity of the file at this path now. Errors: FileNotFound, SystemError; BadRequest if it
  /// is a directory; FileCorrupt if it is anything else than a regular file.
  static Result<FileIdentity> of_path(const std::string& path);
  /// The identity of an open file now; `path` is for messages. Errors: SystemError, BadRequest and
  /// FileCorrupt as above.
  static Result<FileIdentity> of_descriptor(const UniqueFd& fd, const std::string& path);

  bool operator==(const FileIdentity&) const = default;
};

class GgufFile {
 public:
  static Result<GgufFile> open(const std::string& path);

  /// For a split model, the first file.
  const std::string& path() const { return path_; }
  const FileIdentity& identity() const { return identity_; }
  /// The current identity of the files at the same paths.
  Result<FileIdentity> identity_now() const;
  /// The current identity of the opened files, even if they have been deleted. Errors: SystemError.
  Result<FileIdentity> opened_identity_now() const;

  /// In file order.
  std::span<const GgufTensor> tensors() const { return directory_.tensors; }

  /// Returns null if there is no such tensor.
  const GgufTensor* find(std::string_view name) const;
  /// The tensor, never null. Errors: MissingWeight.
  Result<const GgufTensor*> tensor(std::string_view name) const;

  /// The tensor's bytes in the mapping.
  std::span<const std::byte> data(const GgufTensor& tensor) const;

  /// Fills `destination` with the tensor's bytes from byte `from`; the tensor has enough bytes.
  /// Errors: FileCorrupt if the file became shorter; SystemError if it cannot be read.
  Result<void> read(const GgufTensor& tensor, std::uint64_t from,
                    std::span<std::byte> destination) const;

  /// The files of the model: 1, or the parts of a split model.
  std::uint32_t part_count() const { return static_cast<std::uint32_t>(other_parts_.size() + 1); }
  /// The size when the file was opened.
  std::uint64_t part_size_bytes(std::uint32_t number) const {
    return part(number).mapped_.size_bytes;
  }
  /// Fills `destination` with the bytes of one file from byte `from`; the file has enough bytes.
  /// Errors: those of `read`.
  Result<void> read_part(std::uint32_t number, std::uint64_t from,
                         std::span<std::byte> destination) const;

  /// Errors: FileCorrupt if the file was written since `open`; data read since then is invalid. A
  /// deleted or renamed file counts as unchanged.
  Result<void> check_unchanged() const;

  /// Lets the kernel drop what it has cached of the files, so that a loaded model is not in memory
  /// twice. Everything can still be read, then from the disk. Pages that another process maps stay,
  /// and so do files in memory (tmpfs).
  void release_cache() const;

  bool has(std::string_view key) const;

  /// The length of a metadata array, without decoding it.
  /// Errors: FileCorrupt if the key is missing; UnsupportedModel if it is not an array.
  Result<std::uint64_t> length(std::string_view key) const;

  /// A metadata value. T: uint32_t, uint64_t, int64_t (any integer in range), float, bool, string,
  /// vector<string>, vector<float>, vector<int32_t>, vector<bool>.
  /// Errors: FileCorrupt if the key is missing; UnsupportedModel if it has another type.
  template <class T>
  Result<T> get(std::string_view key) const;

  /// The same; returns `fallback` if the key is missing.
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
  static Result<GgufFile> map(UniqueFd fd, const std::string& path);
  static Result<GgufFile> open_split(GgufFile one, std::uint32_t n_parts);
  Result<void> add_part(GgufFile part);
  Result<FileIdentity> opened_part_identity() const;
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

}  // namespace leasehold
