#include "worker/engine/engine_limits.hpp"

#include <catch2/catch.hpp>

#include "kernels/model/step_buffers.hpp"
#include "tests/support/engine_rig.hpp"

namespace leasehold::testing {
namespace {

using Catch::Matchers::Contains;

ModelConfig model() {
  return EngineRig().config();
}

constexpr SchedulerLimits kLimits{.max_batch_size = 8, .token_budget = 64};

}  // namespace

TEST_CASE("engine limits: a step fits in exactly the memory that it needs") {
  const std::uint64_t needed = step_memory_bytes(kLimits, model());
  CHECK(needed > 64 * std::uint64_t{model().n_embd} * sizeof(float));
  CHECK(check_step_memory(kLimits, model(), needed));
  CHECK(check_step_memory(kLimits, model(), needed - 1).error().code == Errc::OutOfMemory);
}

TEST_CASE("engine limits: a plan counts the step of the default limits") {
  CHECK(step_memory_bytes({}, model()) == step_buffer_bytes(model(), {}));
}

TEST_CASE("engine limits: the error names the largest token budget that fits") {
  SchedulerLimits fits = kLimits;
  fits.token_budget = 40;
  const Error error = check_step_memory(kLimits, model(), step_memory_bytes(fits, model())).error();
  CHECK_THAT(error.detail, Contains("a step of 64 tokens and 8 sequences needs"));
  CHECK_THAT(error.detail, Contains("use --token-budget 40 or less"));
}

TEST_CASE("engine limits: the error names a smaller batch where the batch alone is too large") {
  const std::uint64_t of_three =
      step_memory_bytes({.max_batch_size = 3, .token_budget = 3}, model());
  CHECK_THAT(check_step_memory(kLimits, model(), of_three).error().detail,
             Contains("use --token-budget 3 and --max-batch-size 3 or less"));
  CHECK_THAT(check_step_memory(kLimits, model(), 1).error().detail,
             Contains("use a smaller model"));
}

TEST_CASE("engine limits: the passes of a draft model count beside the step") {
  constexpr std::uint64_t kDraftBytes = 5 << 20;
  const std::uint64_t step = step_memory_bytes(kLimits, model());
  CHECK(check_step_memory(kLimits, model(), step + kDraftBytes, kDraftBytes));
  const Result<void> checked =
      check_step_memory(kLimits, model(), step + kDraftBytes - 1, kDraftBytes);
  REQUIRE_FALSE(checked);
  CHECK_THAT(checked.error().detail, Contains("(5 MiB of them for the draft model)"));
  CHECK_THAT(checked.error().detail, Contains("use --token-budget 63 or less"));
  CHECK_THAT(check_step_memory(kLimits, model(), 1, kDraftBytes).error().detail,
             Contains("omit --draft-model"));
}

}  // namespace leasehold::testing
