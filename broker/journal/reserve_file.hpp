/// Holds disk space in reserve and releases it when the disk is full and a fence must be written.
///
/// Threads: one. Source: posix_fallocate(3), statvfs(3).
#pragma once

#include <cstdint>
#include <string>
#include <system_error>

#include "common/machine/unique_fd.hpp"

namespace leasehold::journal {

class ReserveFile {
 public:
  /// Opens or creates the file. Space that an earlier broker reserved stays reserved. Errors: those
  /// of state_file_error.
  static Result<ReserveFile> open(const std::string& path);

  /// Grows the file to at least this size, in steps of 1 MiB, so that most calls do nothing.
  /// Errors: those of state_file_error; the file keeps its size.
  Result<void> grow_to(std::uint64_t size_bytes);

  /// The bytes that `grow_to` would add to the file.
  std::uint64_t missing_bytes(std::uint64_t size_bytes) const;

  /// The error with which the file cannot grow by this many bytes; no error if it can. Does not
  /// keep the space. Can take 0.1 s on a full file system, because the kernel searches for space.
  std::error_code growth_error(std::uint64_t size_bytes) const;

  /// Free bytes of the file system, without regard to quotas and file size limits. Takes
  /// microseconds. 0 if the file system cannot be queried.
  std::uint64_t file_system_free_bytes() const;

  /// Releases this much of the reserved space to the file system; all if less is reserved.
  void give_up(std::uint64_t size_bytes);

  std::uint64_t size_bytes() const { return size_bytes_; }

 private:
  ReserveFile(std::string path, UniqueFd fd, std::uint64_t size_bytes)
      : path_(std::move(path)), fd_(std::move(fd)), size_bytes_(size_bytes) {}

  std::string path_;
  UniqueFd fd_;
  std::uint64_t size_bytes_;
};

}  // namespace leasehold::journal
