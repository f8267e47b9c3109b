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

#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"
#include "kernels/model/gguf/gguf.hpp"

namespace leasehold {

/// Opens a file or a directory for reading. Nothing above the directory is reached, and no link is
/// followed (openat2(2), RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS). Errors: BadRequest for a path
/// that is absolute, has "..", or passes a link; FileNotFound; PermissionDenied; SystemError.
Result<UniqueFd> open_below(int directory_fd, std::string_view relative_path);

/// True for the descriptor of a directory.
bool is_directory(const UniqueFd& fd);

class FileBelow {
 public:
  /// `path` is for messages. Errors: FileCorrupt if it is not a regular file or is empty.
  static Result<FileBelow> adopt(UniqueFd fd, std::string path);

  const std::string& path() const { return path_; }
  const UniqueFd& fd() const { return fd_; }
  /// The size when the file was opened.
  std::uint64_t size_bytes() const { return identity_.size_bytes; }

  /// Fills `into` from byte `from` on; the file has enough bytes. Errors: FileCorrupt if it became
  /// shorter; SystemError.
  Result<void> read(std::uint64_t from, std::span<std::byte> into) const;

  /// The first `size_bytes` bytes from `from` on; see `read`.
  Result<std::string> text(std::uint64_t from, std::uint64_t size_bytes) const;

  /// Errors: FileCorrupt if the file was written since it was opened; SystemError.
  Result<void> check_unchanged() const;

 private:
  FileBelow(UniqueFd fd, std::string path, const FileIdentity& identity)
      : fd_(std::move(fd)), path_(std::move(path)), identity_(identity) {}

  UniqueFd fd_;
  std::string path_;
  FileIdentity identity_;
};

}  // namespace leasehold
