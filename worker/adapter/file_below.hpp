/// A regular file below a directory.
///
/// Lifetime: owns its descriptor; a deleted file stays readable. It can be moved, not copied.
/// Threads: any number at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"

namespace leasehold {

/// Opens a file or a directory for reading, one directory of the path after the other, so nothing
/// above `directory_fd` is reached, and no link is followed. (Under RestrictSUIDSGID= of systemd
/// openat2(2) fails with ENOSYS.) Errors: BadRequest for a path that is absolute, has "..", or
/// passes a link; FileNotFound; PermissionDenied; SystemError.
Result<UniqueFd> open_below(int directory_fd, std::string_view relative_path);

/// True for the descriptor of a directory.
bool is_directory(const UniqueFd& fd);

class FileBelow {
 public:
  /// `path` is for messages. Errors: FileCorrupt if it is not a regular file or is empty.
  static Result<FileBelow> adopt(UniqueFd fd, std::string path);

  const std::string& path() const { return path_; }
  /// The size when the file was opened.
  std::uint64_t size_bytes() const { return size_bytes_; }

  /// Copies the first bytes, at most the whole file, into memory. From then on `read` gives these
  /// bytes from there: a later write to the file cannot make what was parsed differ from what is
  /// hashed. Errors: those of `read`.
  Result<void> keep_head(std::uint64_t most_bytes);
  std::span<const std::byte> head() const { return head_; }

  /// Fills `into` from byte `from` on; the file has enough bytes. Errors: FileCorrupt if it became
  /// shorter; SystemError.
  Result<void> read(std::uint64_t from, std::span<std::byte> into) const;

 private:
  FileBelow(UniqueFd fd, std::string path, std::uint64_t size_bytes)
      : fd_(std::move(fd)), path_(std::move(path)), size_bytes_(size_bytes) {}

  UniqueFd fd_;
  std::string path_;
  std::uint64_t size_bytes_;
  std::vector<std::byte> head_;
};

}  // namespace leasehold
