/// Reserved disk space, released when the disk is full and a fence must be written.
///
/// Threads: one. Source: posix_fallocate(3).
#pragma once

#include <cstdint>
#include <string>

#include "common/unique_fd.hpp"

namespace leasehold::journal {

class ReserveFile {
 public:
  /// Keeps the space that an earlier broker reserved. Errors: those of state_file_error.
  static Result<ReserveFile> open(const std::string& path);

  /// Grows the file to at least this size, in steps of 1 MiB, so that most calls do nothing.
  /// Errors: those of state_file_error; the file keeps its size.
  Result<void> hold(std::uint64_t size_bytes);

  /// True if the file system has space for this many more bytes. Reserves none.
  bool could_grow(std::uint64_t size_bytes) const;

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
