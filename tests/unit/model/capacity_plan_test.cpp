// The memory that a model needs: the sizes of a model of the tree, and the bounds of a plan.
#include "kernels/model/capacity_plan.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "kernels/model/record_size.hpp"
#include "tests/support/generated_model.hpp"
#include "tests/support/test_paths.hpp"

using namespace leasehold;

namespace {

constexpr std::uint64_t kMemory = 4ull << 30;

PlanRequest request_of(std::uint32_t tenants, std::uint32_t context) {
  return {.model = bundled_model_path(), .tenants = tenants, .context = context};
}

}  // namespace

TEST_CASE("plan: capacity is whole extents for every tenant, and holds each request") {
  for (const std::uint32_t tenants : {1u, 7u, 64u, 1000u}) {
    const CapacityPlan plan = plan_capacity(request_of(tenants, 256), kMemory).value();
    const std::uint64_t lease = std::uint64_t{plan.extents_per_tenant} * plan.extent_bytes;
    CHECK(plan.capacity_bytes == tenants * lease);
    CHECK(plan.extent_bytes / plan.block_bytes * plan.extents_per_tenant >= plan.blocks_per_tenant);
    CHECK(plan.capacity_bytes / plan.extent_bytes <= 1024);
    CHECK(plan.blocks_per_tenant == 256 / 16 + record_block_count({256}, plan.block_bytes));
    CHECK(plan.kv_bytes_per_token * 16 == plan.block_bytes);
  }
}

TEST_CASE("plan: the broker chooses the planned extents, whatever the context and the tenants") {
  constexpr std::uint64_t kBlock = 192 << 10;  // of Qwen2-0.5B
  const std::uint32_t max_extents = GENERATE(1u, 64u, 1024u);
  for (std::uint32_t context = 16; context <= 32'768; context += context / 16 * 5 + 16) {
    for (std::uint32_t tenants = 1; tenants <= std::min(max_extents, 200u); ++tenants) {
      CapacityPlan plan{.block_bytes = kBlock, .blocks_per_tenant = context / 16 + 2};
      choose_capacity(plan, tenants, max_extents);
      INFO(context << " tokens, " << tenants << " tenants, " << max_extents << " extents");
      REQUIRE(choose_extent_size(plan.capacity_bytes, kBlock, max_extents) == plan.extent_bytes);
      REQUIRE(plan.extent_bytes / kBlock * plan.extents_per_tenant >= plan.blocks_per_tenant);
      REQUIRE(plan.capacity_bytes >=
              std::uint64_t{tenants} * plan.extents_per_tenant * plan.extent_bytes);
    }
  }
}

TEST_CASE("plan: larger extents need less, and the capacity is still the least that chooses them") {
  CapacityPlan plan{.block_bytes = 192 << 10, .blocks_per_tenant = 2050};
  choose_capacity(plan, 5, 1024);
  CHECK(plan.extent_bytes == 4 << 20);  // 2 MiB: 1025 extents
  CHECK(plan.extents_per_tenant == 98);
  CHECK(plan.capacity_bytes == 2052ull << 20);  // 1960 MiB are 980 extents of 2 MiB
}

TEST_CASE("plan: the layers of multi-token prediction need no memory, and the plan counts them") {
  PlanRequest request = request_of(1, 64);
  CHECK(plan_capacity(request, kMemory).value().skipped_layers == 0);
  request.model = test_data_path("models-2026/tiny-glm4moe-f32.gguf");
  const CapacityPlan plan = plan_capacity(request, kMemory).value();
  CHECK(plan.skipped_layers == 1);
  CHECK(plan.kv_bytes_per_token == 3 * 2 * 2 * 32 * 2);  // 3 of 4 layers, 2 heads of 32 halves
  CHECK(plan.weights_bytes < 1'000'000);                 // of 1.3 MB
}

TEST_CASE("plan: latent attention keeps its rank and its rotated elements of a token") {
  const testing::Family family = testing::family_named("deepseek2, direct queries, yarn");
  const testing::GeneratedModel model(family);
  PlanRequest request = request_of(1, 64);
  request.model = model.path();
  CHECK(plan_capacity(request, kMemory).value().kv_bytes_per_token ==
        family.layers * (family.latent_rank + family.rope_dim) * 2);
}

TEST_CASE("plan: a draft model needs its weights, and keys, values and states of every text") {
  PlanRequest request = request_of(1, 128);
  const CapacityPlan without = plan_capacity(request, kMemory).value();
  CHECK(without.worker_bytes() == without.weights_bytes);
  request.draft_model = test_data_path("models-2026/tiny-qwen35-f32.gguf");
  request.max_batch_size = 5;
  request.draft_context = 100;
  const CapacityPlan plan = plan_capacity(request, kMemory).value();
  // 4 delta nets with 4 heads of 16 x 16 and 3 inputs of 128 channels, in blocks of the KV of 2
  // layers with 2 heads of 32 halves for 16 positions: 4 pieces of 1 KiB and one of 1.5 KiB each.
  constexpr std::uint64_t kBlock = 2 * 2 * 2 * 32 * 2 * 16;
  CHECK(plan.draft_texts_bytes == 5 * (7 + 3 * 3) * kBlock);
  CHECK(plan.draft_weights_bytes > 0);
  CHECK(plan.worker_bytes() ==
        plan.weights_bytes + plan.draft_weights_bytes + plan.draft_texts_bytes);
  CHECK(plan.step_bytes > without.step_bytes);
  CHECK(plan.needed_bytes() == plan.worker_bytes() + plan.capacity_bytes + plan.step_bytes);
  request.draft_context = 4096;  // longer than a request
  CHECK(plan_capacity(request, kMemory).value().draft_texts_bytes == 5 * (8 + 3 * 3) * kBlock);
  request.draft_model = bundled_model_path();
  CHECK(plan_capacity(request, kMemory).value().draft_weights_bytes == plan.weights_bytes);
  request.draft_model = "/nowhere.gguf";
  CHECK(plan_capacity(request, kMemory).error().code == Errc::FileNotFound);
}

TEST_CASE("plan: f32 doubles the KV of a token, and a longer context needs more of it") {
  PlanRequest request = request_of(4, 128);
  const CapacityPlan half = plan_capacity(request, kMemory).value();
  request.kv_type = "f32";
  CHECK(plan_capacity(request, kMemory).value().kv_bytes_per_token == 2 * half.kv_bytes_per_token);
  CHECK(plan_capacity(request_of(4, 512), kMemory).value().blocks_per_tenant >
        half.blocks_per_tenant);
}

TEST_CASE("plan: q8_0 takes 17 bytes where f16 takes 32, and narrow heads are refused") {
  PlanRequest request{.model = test_data_path("models/kq-llama-q4_k_m.gguf"), .tenants = 4};
  const CapacityPlan half = plan_capacity(request, kMemory).value();
  request.kv_type = "q8_0";
  const CapacityPlan rounded = plan_capacity(request, kMemory).value();
  CHECK(rounded.kv_bytes_per_token * 32 == half.kv_bytes_per_token * 17);
  CHECK(half.extent_bytes / half.block_bytes == 128);
  CHECK(rounded.extent_bytes / rounded.block_bytes == 240);
  request.model = bundled_model_path();  // heads of 16 elements
  const Error refused = plan_capacity(request, kMemory).error();
  CHECK(refused.code == Errc::BadRequest);
  CHECK(refused.detail.find("use --kv-type f16") != std::string::npos);
}

TEST_CASE("plan: a missing file, too many tenants and a context beyond the model's are refused") {
  PlanRequest many = request_of(1025, 256);
  CHECK(plan_capacity(many, kMemory).error().code == Errc::BadRequest);
  CHECK(plan_capacity(many, kMemory).error().detail.ends_with("or raise it; it is at most 16384"));
  many.tenants = 65'536;
  many.max_extents = 16'384;
  const std::string most = plan_capacity(many, kMemory).error().detail;
  CHECK(most.ends_with("16384; use fewer tenants; --max-extents is at most that"));
  PlanRequest request = request_of(1, 1 << 20);
  CHECK(plan_capacity(request, kMemory).error().code == Errc::BadRequest);
  request.model = "/nowhere.gguf";
  CHECK(plan_capacity(request, kMemory).error().code == Errc::FileNotFound);
}
