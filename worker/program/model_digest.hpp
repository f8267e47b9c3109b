/// Computes the digest of the model's content on its own thread while the model is loaded.
///
/// It takes about as long as loading, so the thread has an ordinary share of the CPUs.
///
/// Lifetime: the destructor stops the thread. Threads: one caller.
#pragma once

#include <future>
#include <memory>
#include <string>
#include <thread>

#include "kernels/model/gguf/content_digest.hpp"

namespace leasehold {

class ModelDigest {
 public:
  /// If `cache_directory` is not empty, a digest cached there is reused, and a new digest is
  /// stored. Errors: SystemError when no thread can be started.
  static Result<std::unique_ptr<ModelDigest>> start(std::shared_ptr<const GgufFile> file,
                                                    const std::string& cache_directory);

  /// Waits for the digest. Errors: those of content_digest. Call once.
  Result<ContentDigest> take() { return digest_.get(); }

 private:
  ModelDigest() = default;

  std::future<Result<ContentDigest>> digest_;
  std::jthread thread_;  // destroyed before the future
};

}  // namespace leasehold
