/// The directory of the spill files (`--spill-dir`), opened once at start.
///
/// A spill file has no name, and all its space is allocated before a worker gets it, so a disk that
/// fills up later takes nothing from it. Its bytes are sealed by the worker, which trusts the file
/// for nothing. Threads: any; each call waits for the disk.
#pragma once

#include <cstdint>
#include <string>

#include "common/unique_fd.hpp"

namespace leasehold {

class SpillDirectory {
 public:
  /// Errors: BadRequest when it is missing, no directory or a symbolic link; PermissionDenied when
  /// it is another user's, or others may write to it; SystemError.
  static Result<SpillDirectory> open(const std::string& path);

  /// An empty file with this much space. Errors: DiskFull; BadRequest on a read-only file system,
  /// or one without nameless files or allocation; SystemError.
  Result<UniqueFd> create_file(std::uint64_t size_bytes) const;

 private:
  SpillDirectory(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  std::unexpected<Error> file_error(std::uint64_t size_bytes, int error_number) const;

  UniqueFd fd_;
  std::string path_;
};

}  // namespace leasehold
