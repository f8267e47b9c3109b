#include "worker/program/load_progress.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/log.hpp"

namespace leasehold {
namespace {

constexpr auto kShowAfter = std::chrono::seconds(1);
constexpr std::uint64_t kBarWidth = 40;
constexpr std::uint64_t kNeverDrawn = ~std::uint64_t{0};

void draw(std::uint64_t percent) {
  const std::uint64_t filled = percent * kBarWidth / 100;
  (void)write_beside_log(fmt::format("\rloading weights [{:-<{}}] {:>3} %{}",
                                     std::string(filled, '#'), kBarWidth, percent,
                                     percent == 100 ? "\n" : ""));
}

}  // namespace

LoadProgress load_progress_on_terminal() {
  if (::isatty(STDERR_FILENO) == 0) return {};
  const auto start = std::chrono::steady_clock::now();
  return [start, drawn = kNeverDrawn](std::uint64_t done_bytes, std::uint64_t total_bytes) mutable {
    const std::uint64_t percent = done_bytes * 100 / std::max<std::uint64_t>(1, total_bytes);
    const bool is_slow = std::chrono::steady_clock::now() - start > kShowAfter;
    if (is_slow && percent != std::exchange(drawn, percent)) draw(percent);
  };
}

void log_ready(const WorkerOptions& options, const ModelConfig& model,
               std::uint64_t kv_block_size_bytes, std::uint32_t blocks_per_extent) {
  const SchedulerLimits& limits = options.limits;
  spdlog::info(
      "ready name={} address={} block_size_bytes={} blocks_per_extent={} max_batch_size={} "
      "token_budget={} speculate={} max_context={} max_waiting={} max_waiting_per_lease={}",
      options.name, options.listen_path, kv_block_size_bytes, blocks_per_extent,
      limits.max_batch_size, limits.token_budget, limits.speculate, model.n_context,
      limits.max_waiting, limits.max_waiting_per_lease);
}

void warn_of_group_limit(const MachineMemory& memory, std::uint64_t weights_bytes) {
  if (memory.limit_file.empty() || weights_bytes <= memory.available_bytes) return;
  spdlog::warn(
      "the weights exceed what the control group has left; filling them lets the kernel end its "
      "processes weights_bytes={} available_bytes={} limit_bytes={} limit_file={}",
      weights_bytes, memory.available_bytes, memory.total_bytes, memory.limit_file);
}

void RestoreLog::note(const Result<void>& restored) {
  const auto failed = restored ? std::nullopt : std::optional(restored.error().code);
  if (std::exchange(failed_, failed) == failed || !failed) return;
  spdlog::error("weights not restored error={} reason=\"{}\"", name(*failed),
                restored.error().detail);
}

}  // namespace leasehold
