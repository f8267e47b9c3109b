/// Disk space set aside while there is some, given up when a fence must be written and there is
/// none.
///
/// Threads: one. Source: posix_fallocate(3).
#pragma once

#include <cstdint>
#include <string>

#include "common/unique_fd.hpp"

namespace leasehold::journal {

class ReserveFile {
 public:
  /// With what a broker before this one has left of it. Errors: those of state_file_error.
  static Result<ReserveFile> open(const std::string& path);

  /// Grows the file to at least this size, in steps, so that this is nearly always free of charge.
  /// Errors: DiskFull; the file keeps the size it had.
  Result<void> hold(std::uint64_t size_bytes);

  /// Gives so much of it back to the file system, or all there is.
  void give_up(std::uint64_t size_bytes);

  std::uint64_t size_bytes() const { return size_bytes_; }

 private:
  ReserveFile(UniqueFd fd, std::uint64_t size_bytes)
      : fd_(std::move(fd)), size_bytes_(size_bytes) {}

  UniqueFd fd_;
  std::uint64_t size_bytes_;
};

}  // namespace leasehold::journal
