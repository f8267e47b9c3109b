/// A file that gets its name only when it is complete.
///
/// Bytes go to FILE.partial; finish() makes them durable and renames the file. Without finish() the
/// destructor removes FILE.partial. A killed run may leave the partial file; the next run
/// overwrites it.
///
/// Lifetime: owns the descriptor and the partial file. Threads: one.
/// Errors: DiskFull, PermissionDenied, FileNotFound (missing folder), SystemError.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"

namespace leasehold::make_model {

class PartialFile {
 public:
  /// Opens `path`.partial and reserves `size_bytes`, so that a full disk is an error at the start.
  /// Errors: also BadRequest when `path` exists and is not a regular file.
  static Result<PartialFile> create(std::string path, std::uint64_t size_bytes);

  PartialFile(PartialFile&&) noexcept = default;
  PartialFile& operator=(PartialFile&&) = delete;
  ~PartialFile();

  Result<void> append(std::span<const std::byte> bytes);
  Result<void> finish();

  std::uint64_t size_bytes() const { return size_bytes_; }

 private:
  PartialFile(std::string path, UniqueFd fd);
  Result<void> reserve(std::uint64_t size_bytes);
  Result<void> flush();
  Result<void> sync_and_rename();

  std::string path_;
  std::string partial_path_;
  UniqueFd fd_;  // valid until finished or moved from
  std::vector<std::byte> buffer_;
  std::uint64_t size_bytes_ = 0;
};

}  // namespace leasehold::make_model
