#include "worker/program/model_digest.hpp"

#include <spdlog/spdlog.h>

#include <utility>

#include "common/machine/process.hpp"
#include "common/machine/start_thread.hpp"
#include "kernels/model/gguf/digest_cache.hpp"

namespace leasehold {
namespace {

Result<ContentDigest> cached_digest(const GgufFile& file, const std::string& directory,
                                    const std::stop_token& stop) {
  if (directory.empty()) return content_digest(file, stop);
  const DigestCache cache(directory);
  if (const auto cached = cache.find(file)) return *cached;
  const ContentDigest digest = TRY(content_digest(file, stop));
  if (const auto stored = cache.store(file, digest); !stored) {
    spdlog::warn("the digest of the model was not cached reason=\"{}\"", stored.error().detail);
  }
  return digest;
}

}  // namespace

Result<std::unique_ptr<ModelDigest>> ModelDigest::start(std::shared_ptr<const GgufFile> file,
                                                        const std::string& cache_directory) {
  std::unique_ptr<ModelDigest> started(new ModelDigest);
  std::promise<Result<ContentDigest>> promise;
  started->digest_ = promise.get_future();
  auto body = [file = std::move(file), cache_directory,
               promise = std::move(promise)](const std::stop_token& stop) mutable {
    set_thread_name("digest");
    promise.set_value(cached_digest(*file, cache_directory, stop));
  };
  started->thread_ =
      TRY(start_thread<std::jthread>("the thread of the model's digest", std::move(body)));
  return started;
}

}  // namespace leasehold
