/// Digests of model files, kept between starts of workers: a large file takes seconds to read.
///
/// One small file per model, which names path, device, inode, size and modification time of the
/// model's file. A cached digest is used only while all of them are equal. Any worker may write the
/// directory; files of another user than root or this process's are ignored, and so are damaged
/// ones. Threads: any.
#pragma once

#include <optional>
#include <string>

#include "worker/gguf/content_digest.hpp"

namespace leasehold {

class DigestCache {
 public:
  explicit DigestCache(std::string directory) : directory_(std::move(directory)) {}

  /// Nothing for a file that is not cached, or that was written since.
  std::optional<ContentDigest> find(const GgufFile& file) const;

  /// Replaces what is cached for this path, atomically. Does nothing for a file that was written in
  /// the last two seconds: another write could leave its time as it is. Errors: FileNotFound,
  /// PermissionDenied, DiskFull, SystemError; the digest is then computed again the next time.
  Result<void> store(const GgufFile& file, const ContentDigest& digest) const;

 private:
  std::string path_of(const GgufFile& file) const;

  std::string directory_;
};

}  // namespace leasehold
