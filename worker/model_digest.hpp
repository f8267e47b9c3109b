/// The digest of the model's content, computed beside loading on a thread of its own.
///
/// Lifetime: `file` outlives it; the destructor stops the thread. Threads: one, but for its own.
#pragma once

#include <future>
#include <memory>
#include <string>
#include <thread>

#include "worker/gguf/content_digest.hpp"

namespace leasehold {

class ModelDigest {
 public:
  /// With a directory, a digest that is cached there is used again, and a new one is stored.
  /// Errors: SystemError when no thread can be started.
  static Result<std::unique_ptr<ModelDigest>> start(const GgufFile& file,
                                                    const std::string& cache_directory);

  /// Waits for it. Errors: those of content_digest. Call once.
  Result<ContentDigest> take() { return digest_.get(); }

 private:
  ModelDigest() = default;

  std::future<Result<ContentDigest>> digest_;
  std::jthread thread_;  // ends before the future does
};

}  // namespace leasehold
