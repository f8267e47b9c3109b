/// Digests of model files, kept between starts of workers: a large file takes seconds to read.
///
/// The cache has one small file per model, which records the path, number of parts, device, inode,
/// size and times of the model's file. A cached digest is used only while all of these are equal.
/// Any worker may write to the directory. Files of a user other than root or this process's user
/// are ignored, and so are damaged files. Threads: any.
#pragma once

#include <optional>
#include <string>

#include "kernels/model/gguf/content_digest.hpp"

namespace leasehold {

class DigestCache {
 public:
  explicit DigestCache(std::string directory) : directory_(std::move(directory)) {}

  /// Returns nothing for a file that is not cached or was written since.
  std::optional<ContentDigest> find(const GgufFile& file) const;

  /// Replaces the digest that is cached for this path, atomically. Does nothing for a file that was
  /// written in the last two seconds, because another write might not change its time. Errors:
  /// FileNotFound, PermissionDenied, DiskFull, SystemError; the next start then computes the digest
  /// again.
  Result<void> store(const GgufFile& file, const ContentDigest& digest) const;

 private:
  std::string path_of(const GgufFile& file) const;

  std::string directory_;
};

}  // namespace leasehold
