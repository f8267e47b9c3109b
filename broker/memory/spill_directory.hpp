/// The directory of the spill files (`--spill-dir`), opened once at start.
///
/// A spill file has no name. All its space is allocated before a worker gets it, so a disk that
/// fills up later does not affect it. The worker encrypts and authenticates what it stores in the
/// file. Threads: any; each call waits for the disk.
#pragma once

#include <cstdint>
#include <string>

#include "common/machine/unique_fd.hpp"

namespace leasehold {

class SpillDirectory {
 public:
  /// Errors: BadRequest if the path is missing, not a directory or a symbolic link;
  /// PermissionDenied if the directory belongs to another user or other users may write to it;
  /// SystemError.
  static Result<SpillDirectory> open(const std::string& path);

  /// Creates an empty file with this much space allocated. Errors: DiskFull; BadRequest on a file
  /// system that is read-only or does not support O_TMPFILE or allocation; SystemError.
  Result<UniqueFd> create_file(std::uint64_t size_bytes) const;

 private:
  SpillDirectory(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  std::unexpected<Error> file_error(std::uint64_t size_bytes, int error_number) const;

  UniqueFd fd_;
  std::string path_;
};

}  // namespace leasehold
