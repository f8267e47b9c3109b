/// Checks an engine's limits against the memory that a step needs. Pure.
#pragma once

#include <cstdint>

#include "common/result.hpp"
#include "kernels/model/config.hpp"
#include "worker/schedule/scheduler.hpp"

namespace leasehold {

/// Bytes of intermediate values in the largest step: a row per token, and logits per sequence.
std::uint64_t step_memory_bytes(const SchedulerLimits& limits, const ModelConfig& model);

/// `draft_bytes`: memory for the passes of a draft model, in addition to the step's. Errors:
/// OutOfMemory, with the largest limits that fit.
Result<void> check_step_memory(const SchedulerLimits& limits, const ModelConfig& model,
                               std::uint64_t available_bytes, std::uint64_t draft_bytes = 0);

}  // namespace leasehold
