/// Reserved disk space, released when the disk is full and a fence must be written.
///
/// Threads: one. Source: posix_fallocate(3), statvfs(3).
#pragma once

#include <cstdint>
#include <string>
#include <system_error>

#include "common/unique_fd.hpp"

namespace leasehold::journal {

class ReserveFile {
 public:
  /// Keeps the space that an earlier broker reserved. Errors: those of state_file_error.
  static Result<ReserveFile> open(const std::string& path);

  /// Grows the file to at least this size, in steps of 1 MiB, so that most calls do nothing.
  /// Errors: those of state_file_error; the file keeps its size.
  Result<void> hold(std::uint64_t size_bytes);

  /// How much `hold` would add to the file.
  std::uint64_t missing_bytes(std::uint64_t size_bytes) const;

  /// Why the file system has no space for this many more bytes, or nothing if it has. Reserves
  /// none. Can take 0.1 s on a full file system, which searches it for space.
  std::error_code growth_error(std::uint64_t size_bytes) const;

  /// Free bytes of the file system; quotas and limits of file sizes are not known to it. Takes
  /// microseconds. 0 if it cannot be asked.
  std::uint64_t file_system_free_bytes() const;

  /// Releases this much of it to the file system, or all of it if it holds less.
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
