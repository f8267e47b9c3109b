#include "worker/engine/engine_limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "worker/engine/engine.hpp"

namespace leasehold {
namespace {

/// The limits with a smaller token budget, and with at most one sequence per row of it.
SchedulerLimits with_budget(SchedulerLimits limits, std::uint32_t token_budget) {
  limits.token_budget = token_budget;
  limits.max_batch_size = std::min(limits.max_batch_size, token_budget);
  return limits;
}

std::string advice(const SchedulerLimits& limits, std::uint32_t largest_budget, bool has_draft) {
  if (largest_budget == 0 && has_draft)
    return "omit --draft-model, free memory or use a smaller model";
  if (largest_budget == 0) return "free memory or use a smaller model";
  const SchedulerLimits fits = with_budget(limits, largest_budget);
  if (fits.max_batch_size == limits.max_batch_size)
    return fmt::format("use --token-budget {} or less", fits.token_budget);
  return fmt::format("use --token-budget {} and --max-batch-size {} or less", fits.token_budget,
                     fits.max_batch_size);
}

}  // namespace

std::uint64_t step_memory_bytes(const SchedulerLimits& limits, const ModelConfig& model) {
  return Engine::backend_limits(model, limits).scratch_bytes;
}

Result<void> check_step_memory(const SchedulerLimits& limits, const ModelConfig& model,
                               std::uint64_t available_bytes, std::uint64_t draft_bytes) {
  const std::uint64_t needed = step_memory_bytes(limits, model) + draft_bytes;
  if (needed <= available_bytes) return {};
  const auto budgets = std::views::iota(1u, limits.token_budget);
  const auto fits = [&](std::uint32_t budget) {
    return step_memory_bytes(with_budget(limits, budget), model) + draft_bytes <= available_bytes;
  };
  const auto first_too_large = std::ranges::partition_point(budgets, fits);
  const auto largest = static_cast<std::uint32_t>(first_too_large - budgets.begin());
  const std::string of_draft =
      draft_bytes == 0 ? ""
                       : fmt::format(" ({} MiB of them for the draft model)", draft_bytes >> 20);
  return fail(Errc::OutOfMemory,
              fmt::format("a step of {} tokens and {} sequences needs {} MiB{}, and {} MiB of "
                          "memory is available; {}",
                          limits.token_budget, limits.max_batch_size, needed >> 20, of_draft,
                          available_bytes >> 20, advice(limits, largest, draft_bytes > 0)));
}

}  // namespace leasehold
