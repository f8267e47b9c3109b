#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/cuda/plan/row_plan.hpp"
#include "kernels/numerics/rope.hpp"
#include "tests/unit/kernels/cuda/device_step.hpp"

namespace leasehold::testing {
namespace {

const std::vector<std::uint32_t> kCounts{3, 1, 2};
const std::vector<std::uint32_t> kLengths{40, 1, 18};

constexpr KvType kTypes[] = {KvType::F32, KvType::F16, KvType::Q8_0};

/// Blocks of 32 whose rounding has cases of its own, one after the other.
void fill_with_special_blocks(std::vector<float>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float n = static_cast<float>(i % 32) - 15.5F;
    switch (i / 32 % 10) {
      case 0:  // ties, at a scale of 1
        values[i] = i % 32 == 31 ? 127.0F : n;
        break;
      case 1:  // ties, at a scale of 2^-10
        values[i] = (i % 32 == 31 ? -127.0F : n) * 0x1p-10F;
        break;
      case 2:
        values[i] = i % 2 == 0 ? 0.0F : -0.0F;
        break;
      case 3:  // a scale below the smallest normal f16, and the limit of codes
        values[i] = n * 0.72F * 0x1p-20F;
        break;
      case 4:  // a scale below the smallest f16
        values[i] = n * 0x1p-25F;
        break;
      case 5:  // the largest scale
        values[i] = n / 15.5F * 127.0F * 65504.0F;
        break;
      case 6:  // a scale beyond f16
        values[i] = n * 1e7F;
        break;
      case 7:
        values[i] = i % 32 == 5 ? std::nanf("") : n;
        break;
      case 8:
        values[i] = i % 32 == 17 ? -HUGE_VALF : n;
        break;
      default:  // below 2^-119
        values[i] = n * 0x1p-130F;
    }
  }
}

KvLayout layout_of(std::uint32_t head_dim, KvType type, std::uint32_t latent_dim = 0) {
  return {2, {.n_kv_heads = 2, .head_dim = head_dim, .type = type, .latent_dim = latent_dim}};
}

/// Queries, keys and values of a small step, and the blocks for keys and values.
struct AppendCase {
  AppendCase(std::uint64_t seed, std::uint32_t head_dim_, KvType type, std::uint32_t latent_dim = 0)
      : random(seed),
        head_dim(head_dim_),
        step(rows_of(kCounts, kLengths), 3, 1),
        kv(random, layout_of(head_dim, type, latent_dim), kLengths),
        tables(kv),
        q(random_floats(random, step.n_rows() * kHeads * head_dim)),
        k(random_floats(random, step.n_rows() * 2 * head_dim)),
        v(random_floats(random, step.n_rows() * 2 * head_dim)),
        norms{LeasedMemory(head_dim * sizeof(float)), LeasedMemory(head_dim * sizeof(float))},
        cos_sin(step.n_rows() * rope_dim()) {
    for (LeasedMemory& norm : norms) norm.fill<float>(random_floats(random, head_dim));
    fill_rope_cos_sin(step.rows(), {rope_frequencies(rope_dim(), 10000.0)}, cos_sin.data());
  }
  std::uint32_t rope_dim() const { return rotates ? head_dim / 4 * 2 : 0; }

  void on_reference(RopeStyle style, bool with_norms) {
    const auto weight = [&](int i) {
      return with_norms ? norms[i].at().as<const float>() : Leased<const float>();
    };
    step.reference().prepare_heads(step.context(), {.layout = kv.layout.layer(DeviceStep::kLayer),
                                                    .q = q.data(),
                                                    .k = k.data(),
                                                    .v = v.data(),
                                                    .n_heads = kHeads,
                                                    .query_norm = weight(0),
                                                    .key_norm = weight(1),
                                                    .epsilon = 1e-6F,
                                                    .rope_dim = rope_dim(),
                                                    .style = style,
                                                    .cos_sin = cos_sin.data(),
                                                    .block_tables = kv.block_tables()});
  }
  cuda::KernelLaunch fused(RopeStyle style, bool with_norms) {
    const auto weight = [&](int i) {
      return with_norms ? reinterpret_cast<const float*>(norms[i].bytes()) : nullptr;
    };
    const cuda::PlanContext plan = step.plan();
    return cuda::plan_rope_kv_append(
        {.gate = plan.gate,
         .kv = device::KvAddressing::of(kv.layout.layer(plan.layer), tables.view()),
         .q = q.data(),
         .k = k.data(),
         .v = kv.shape.is_latent() ? nullptr : v.data(),
         .q_norm = weight(0),
         .k_norm = weight(1),
         .cos_sin = cos_sin.data(),
         .n_heads = kHeads,
         .n_kv_heads = kv.shape.n_kv_heads,
         .head_dim = kv.shape.head_dim,
         .value_dim = kv.shape.value_dim(),
         .rope_begin = kv.shape.is_latent() ? head_dim - rope_dim() : 0,
         .rope_dim = rope_dim(),
         .epsilon = 1e-6F,
         .style = style},
        plan.n_rows);
  }

  static constexpr std::uint32_t kHeads = 6;
  SeededRandom random;
  std::uint32_t head_dim;
  bool rotates = true;
  DeviceStep step;
  KvFixture kv;
  DeviceTables tables;
  std::vector<float> q;
  std::vector<float> k;
  std::vector<float> v;
  LeasedMemory norms[2];
  std::vector<float> cos_sin;
};

}  // namespace

TEST_CASE("cuda: norms, rotation and append in one launch have the bits of separate launches") {
  for (const KvType type : kTypes)
    for (const RopeStyle style : {RopeStyle::Interleaved, RopeStyle::Halves})
      for (const std::uint32_t head_dim : {8u, 20u, 32u, 64u, 96u, 128u, 256u})
        for (const bool with_norms : {false, true}) {
          if (!can_store(type, head_dim)) continue;
          CAPTURE(static_cast<int>(type), head_dim, with_norms, test_seed());
          AppendCase here(test_seed(), head_dim, type);
          AppendCase reference(test_seed(), head_dim, type);
          reference.on_reference(style, with_norms);
          here.step.run(here.fused(style, with_norms), 3);
          REQUIRE(first_difference(here.q, reference.q) == -1);
          for (std::uint32_t s = 0; s < 3; ++s)
            REQUIRE(here.kv.bytes_of(s) == reference.kv.bytes_of(s));
        }
}

TEST_CASE("cuda: latent keys are normed in front, rotated behind and stored once") {
  for (const KvType type : kTypes)
    for (const std::uint32_t head_dim : {48u, 576u}) {
      if (!can_store(type, head_dim)) continue;
      CAPTURE(static_cast<int>(type), head_dim, test_seed());
      AppendCase here(test_seed(), head_dim, type, head_dim / 3 * 2);
      AppendCase reference(test_seed(), head_dim, type, head_dim / 3 * 2);
      reference.on_reference(RopeStyle::Interleaved, true);
      here.step.run(here.fused(RopeStyle::Interleaved, true), 3);
      REQUIRE(first_difference(here.q, reference.q) == -1);
      for (std::uint32_t s = 0; s < 3; ++s)
        REQUIRE(here.kv.bytes_of(s) == reference.kv.bytes_of(s));
    }
}

TEST_CASE("cuda: keys and values that are not rotated are appended with the reference's bits") {
  for (const KvType type : kTypes) {
    const std::uint32_t head_dim = can_store(type, 24) ? 24 : 160;
    AppendCase here(test_seed(), head_dim, type);
    AppendCase reference(test_seed(), head_dim, type);
    here.rotates = reference.rotates = false;
    reference.on_reference(RopeStyle::Halves, false);
    here.step.run(here.fused(RopeStyle::Halves, false));
    REQUIRE(first_difference(here.q, reference.q) == -1);
    for (std::uint32_t s = 0; s < 3; ++s) REQUIRE(here.kv.bytes_of(s) == reference.kv.bytes_of(s));
  }
}

TEST_CASE("cuda: an append in q8_0 rounds ties, limits and numbers that are not finite as a CPU") {
  AppendCase here(test_seed(), 256, KvType::Q8_0);
  AppendCase reference(test_seed(), 256, KvType::Q8_0);
  fill_with_special_blocks(here.v);
  for (auto* of_case : {&here, &reference}) {
    of_case->v = here.v;
    of_case->k = here.v;
  }
  here.rotates = reference.rotates = false;
  reference.on_reference(RopeStyle::Halves, false);
  here.step.run(here.fused(RopeStyle::Halves, false));
  for (std::uint32_t s = 0; s < 3; ++s) REQUIRE(here.kv.bytes_of(s) == reference.kv.bytes_of(s));
}

TEST_CASE("cuda: the append touches no memory of a dead sequence") {
  AppendCase c(test_seed(), 64, GENERATE(KvType::F16, KvType::Q8_0));
  const auto q = c.q;
  c.step.mirror.live &= ~std::uint64_t{1};
  c.kv.forbid(0);
  c.step.run(c.fused(RopeStyle::Halves, true));
  const std::size_t dead = 3 * AppendCase::kHeads * 64;
  REQUIRE(std::equal(q.begin(), q.begin() + dead, c.q.begin()));
  REQUIRE_FALSE(std::equal(q.begin() + dead, q.end(), c.q.begin() + dead));
}

}  // namespace leasehold::testing
