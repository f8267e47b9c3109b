/// The SHA-256 of an adapter's files, computed while matrices are read from the last one: the bytes
/// that were used are the bytes that are hashed.
///
/// One file is hashed alone; of several, each follows its length as 8 bytes, little-endian.
///
/// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "common/content_digest.hpp"
#include "common/result.hpp"
#include "kernels/model/gguf/sha256.hpp"
#include "worker/adapter/file_below.hpp"

namespace leasehold {

class FilesDigest {
 public:
  /// Reads all files but the last. `files` is not empty; every call gets the same files. Errors of
  /// all functions: those of FileBelow::read.
  static Result<FilesDigest> start(std::span<const FileBelow> files);

  /// The bytes of the last file that are hashed.
  std::uint64_t position() const { return position_; }
  /// Adds bytes that were read from byte `from` of the last file, after reading what lies between
  /// them and `position()`. Precondition: from ≥ position().
  Result<void> add(std::span<const FileBelow> files, std::uint64_t from,
                   std::span<const std::byte> bytes);
  /// Reads the rest of the last file. Nothing may be added afterwards.
  Result<ContentDigest> finish(std::span<const FileBelow> files);

 private:
  explicit FilesDigest(Sha256 hash) : hash_(std::move(hash)) {}
  Result<void> read_up_to(const FileBelow& file, std::uint64_t end);

  Sha256 hash_;
  std::uint64_t position_ = 0;
};

}  // namespace leasehold
