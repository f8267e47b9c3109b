/// The file that the broker lends to a worker for sealed blocks.
///
/// The file has no name, and its size is fixed and allocated. Another process with access to it
/// (through /proc, or the raw disk) may still truncate or change it, so all data read from it is
/// untrusted. Threads: any; each call is one pread or pwrite and may block for as long as the disk
/// does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/machine/unique_fd.hpp"

namespace leasehold {

class SpillFile {
 public:
  /// Checks a received descriptor: a regular file without a name, of this size, open for reading
  /// and writing at any offset. Errors: UntrustedSegment, SystemError.
  static Result<SpillFile> adopt(UniqueFd fd, std::uint64_t size_bytes);

  std::uint64_t size_bytes() const { return size_bytes_; }

  /// Errors: DiskFull, SystemError.
  Result<void> write(std::uint64_t offset, std::span<const std::byte> bytes) const;
  /// Errors: FileCorrupt when the file is too short, SystemError.
  Result<void> read(std::uint64_t offset, std::span<std::byte> bytes) const;

 private:
  SpillFile(UniqueFd fd, std::uint64_t size_bytes) : fd_(std::move(fd)), size_bytes_(size_bytes) {}

  UniqueFd fd_;
  std::uint64_t size_bytes_;
};

}  // namespace leasehold
