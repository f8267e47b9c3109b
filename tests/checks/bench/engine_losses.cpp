// Time from the revocation of a worker's engine lease to the next token of its texts.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "tests/checks/bench/recover_bench.hpp"
#include "tests/checks/bench/thread_time.hpp"
#include "tests/support/temporary_directory.hpp"

namespace leasehold::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kTexts = 2;
constexpr std::size_t kTokensBetween = 8;

class EngineLossesRun {
 public:
  EngineLossesRun(const RecoverConfig& config, TemporaryDirectory directory)
      : config_(config), directory_(std::move(directory)) {}

  Result<void> run(Samples& samples) {
    TRY(start());
    for (std::uint32_t round = 0; round < config_.rounds; ++round) {
      TRY(lose_engine(false, samples["engine.retained_ms"]));
      TRY(lose_engine(true, samples["engine.reloaded_ms"]));
    }
    return {};
  }

 private:
  /// The worker opens a link, so that the file behind it can change.
  Result<void> start() {
    SystemConfig system = system_config(config_);
    system.model_path = directory_.file("model.gguf");
    std::error_code failed;
    fs::create_symlink(fs::absolute(config_.model_path), system.model_path, failed);
    if (failed) return fail(Errc::SystemError, "cannot link to the model: " + failed.message());
    system_ = TRY(System::start(system));
    for (std::uint32_t i = 0; i < kTexts; ++i)
      texts_.push_back(TRY(start_text(*system_, i, config_.prompt_tokens, kEagerRetry)));
    return {};
  }

  /// Replaces the file by one with the same weights and another identity. The rename is atomic,
  /// because the worker may open the path at any time.
  Result<void> replace_file() {
    const std::string path = directory_.file("model.gguf"), next = directory_.file("next.gguf");
    std::error_code failed;
    fs::copy_file(config_.model_path, next, failed);
    if (!failed) fs::rename(next, path, failed);
    if (failed) return fail(Errc::SystemError, "cannot copy the model: " + failed.message());
    return {};
  }

  Result<LeaseId> engine_lease() {
    for (const wire::LeaseView& lease : TRY(system_->broker().leases()))
      if (lease.scope == wire::LeaseScope::Engine && lease.state == LeaseState::Live)
        return lease.lease;
    return fail(Errc::SystemError, "the worker has no live engine lease");
  }

  Result<std::int64_t> loads() {
    const auto recorded = TRY(system_->broker().events());
    return std::ranges::count_if(recorded, [](const events::StampedEvent& stamped) {
      const auto* region = std::get_if<events::RegionStateChanged>(&stamped.event);
      return region != nullptr && region->kind == "weights" && region->state == "Loading";
    });
  }

  Result<void> lose_engine(bool is_new_file, std::vector<double>& times_ms) {
    for (const auto& text : texts_) TRY(text->await_tokens(text->tokens() + kTokensBetween));
    const std::int64_t before = TRY(loads());
    const LeaseId lease = TRY(engine_lease());
    if (is_new_file) TRY(replace_file());
    TRY(system_->revoke(lease));
    const TimePoint revoked = SystemClock().now();
    for (const auto& text : texts_) {
      times_ms.push_back(ms_of(TRY(text->await_token_after(revoked)) - revoked));
    }
    const std::int64_t read = TRY(loads()) - before;
    if (read == (is_new_file ? 1 : 0)) return {};
    return fail(
        Errc::SystemError,
        fmt::format("the worker read the weights {} times after the revocation of lease {}, "
                    "with {} file",
                    read, to_string(lease), is_new_file ? "a new" : "the same"));
  }

  const RecoverConfig& config_;
  TemporaryDirectory directory_;
  std::unique_ptr<System> system_;
  std::vector<std::unique_ptr<RebindingText>> texts_;
};

}  // namespace

Result<void> measure_engine_losses(const RecoverConfig& config, Samples& samples) {
  return EngineLossesRun(config, TRY(TemporaryDirectory::create("engine"))).run(samples);
}

}  // namespace leasehold::bench
