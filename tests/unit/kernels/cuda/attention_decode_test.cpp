/// Attention of a decode step in one launch has the bits of the reference's separate operators, and
/// a row that is revoked during the launch changes neither its memory nor other rows.
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <string_view>

#include "kernels/cuda/device/attention_params.hpp"
#include "kernels/cuda/plan/attention_plan.hpp"
#include "kernels/cuda/plan/int8_plan.hpp"
#include "kernels/numerics/rope.hpp"
#include "tests/unit/kernels/cuda/device_step.hpp"

namespace leasehold::testing {
namespace {

/// What a layer may have; one row per sequence, at its last position.
struct DecodeShape {
  std::uint32_t n_kv_heads = 2;
  std::uint32_t heads_per_kv = 1;
  std::uint32_t head_dim = 64;
  KvType type = KvType::F16;
  std::vector<std::uint32_t> lengths = {261, 18, 530, 256, 1};
  bool has_norms = false;
  bool has_keys = true;  ///< Otherwise the layer reads what an earlier one stored.
  bool has_query_scales = false;
  bool has_sinks = false;
  bool rotates = true;
  std::uint32_t window = 0;
  float softcap = 0.0F;
};

struct RowBits {
  std::vector<float> out;
  std::vector<std::vector<std::byte>> kv;
};

class DecodeCase {
 public:
  explicit DecodeCase(const DecodeShape& shape_, std::uint32_t spare = 0)
      : shape(shape_),
        random(test_seed() + 5),
        step(rows_of(std::vector<std::uint32_t>(shape.lengths.size(), 1), shape.lengths),
             static_cast<std::uint32_t>(shape.lengths.size()), spare),
        kv(random,
           KvLayout(
               2, {.n_kv_heads = shape.n_kv_heads, .head_dim = shape.head_dim, .type = shape.type}),
           shape.lengths),
        tables(kv),
        n_heads(shape.n_kv_heads * shape.heads_per_kv),
        width(n_heads * shape.head_dim),
        n_planned(static_cast<std::uint32_t>(step.n_rows()) + spare),
        q(random_floats(random, step.n_rows() * width, 2.0F)),
        k(random_floats(random, step.n_rows() * shape.n_kv_heads * shape.head_dim, 2.0F)),
        v(random_floats(random, k.size(), 2.0F)),
        query_scales(random_floats(random, step.n_rows(), 2.0F)),
        norms{LeasedMemory(shape.head_dim * sizeof(float)),
              LeasedMemory(shape.head_dim * sizeof(float)), LeasedMemory(n_heads * sizeof(float))},
        cos_sin(step.n_rows() * rope_dim()),
        out(poisoned(std::size_t{n_planned} * width)),
        counters(n_planned, 0) {
    norms[0].fill<float>(random_floats(random, shape.head_dim));
    norms[1].fill<float>(random_floats(random, shape.head_dim));
    norms[2].fill<float>(random_floats(random, n_heads));
    fill_rope_cos_sin(step.rows(), {rope_frequencies(rope_dim(), 10000.0)}, cos_sin.data());
  }

  std::uint32_t rope_dim() const { return shape.rotates ? shape.head_dim / 4 * 2 : 0; }

  /// The reference's results. It changes q and the blocks, so call it on a case of its own.
  RowBits by_reference() {
    step.reference().prepare_heads(
        step.context(), {.layout = kv.layout.layer(DeviceStep::kLayer),
                         .q = q.data(),
                         .k = shape.has_keys ? k.data() : nullptr,
                         .v = shape.has_keys ? v.data() : nullptr,
                         .n_heads = n_heads,
                         .query_norm = shape.has_norms ? weight(0) : Leased<const float>(),
                         .key_norm = shape.has_norms ? weight(1) : Leased<const float>(),
                         .norms_values = shape.has_norms,
                         .epsilon = 1e-6F,
                         .rope_dim = rope_dim(),
                         .style = RopeStyle::Halves,
                         .cos_sin = cos_sin.data(),
                         .query_scales = shape.has_query_scales ? query_scales.data() : nullptr,
                         .block_tables = kv.block_tables()});
    RowBits bits;
    bits.out.resize(step.n_rows() * width);
    AttentionArgs args = attention(bits.out.data());
    if (shape.has_sinks) args.sinks = weight(2);
    step.reference().attention(step.context(), args);
    return with_blocks(std::move(bits));
  }

  AttentionArgs attention(float* to) const {
    return {.layout = kv.layout.layer(DeviceStep::kLayer),
            .q = q.data(),
            .out = to,
            .n_heads = n_heads,
            .scale = 1.0F / std::sqrt(static_cast<float>(shape.head_dim)),
            .block_tables = kv.block_tables(),
            .window = shape.window,
            .softcap = shape.softcap};
  }
  cuda::AttentionPlanInput input(std::uint32_t n_sms) {
    const std::size_t bytes =
        n_planned * cuda::attention_scratch_bytes_per_row(attention(nullptr), step.step.longest);
    scratch = poisoned(bytes / sizeof(float));
    return {.tables = tables.view(),
            .scratch = scratch.data(),
            .scratch_bytes = bytes,
            .longest = step.step.longest,
            .n_sms = n_sms,
            .max_shared_bytes = max_shared_bytes,
            .prepared = prepared,
            .sinks = shape.has_sinks ? reinterpret_cast<const float*>(norms[2].bytes()) : nullptr,
            .counters = counters.data(),
            .n_counters = n_planned};
  }
  cuda::KernelLaunch plan(std::uint32_t n_sms = 0) {
    const auto norm = [&](int i) {
      return shape.has_norms ? reinterpret_cast<const float*>(norms[i].bytes()) : nullptr;
    };
    const cuda::PlanContext context = step.plan();
    return cuda::plan_decode_attention(
        context,
        {.gate = context.gate,
         .kv = device::KvAddressing::of(kv.layout.layer(context.layer), tables.view()),
         .q = q.data(),
         .k = shape.has_keys ? k.data() : nullptr,
         .v = shape.has_keys ? v.data() : nullptr,
         .q_norm = norm(0),
         .k_norm = norm(1),
         .cos_sin = cos_sin.data(),
         .query_scales = shape.has_query_scales ? query_scales.data() : nullptr,
         .n_heads = n_heads,
         .n_kv_heads = shape.has_keys ? shape.n_kv_heads : 0,
         .head_dim = shape.head_dim,
         .value_dim = shape.head_dim,
         .norms_values = shape.has_norms ? 1u : 0u,
         .rope_dim = rope_dim(),
         .epsilon = 1e-6F,
         .style = RopeStyle::Halves},
        attention(out.data()), input(n_sms));
  }
  RowBits run(const cuda::KernelLaunch& launch, std::uint64_t order_seed = 0) {
    step.run(launch, order_seed);
    RowBits bits;
    bits.out = {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(step.n_rows() * width)};
    return with_blocks(std::move(bits));
  }
  bool counters_are_zero() const {
    return std::ranges::all_of(counters, [](std::uint32_t count) { return count == 0; });
  }

  DecodeShape shape;
  SeededRandom random;
  DeviceStep step;
  KvFixture kv;
  DeviceTables tables;
  std::uint32_t n_heads;
  std::uint32_t width;
  std::uint32_t n_planned;
  std::vector<float> q;
  std::vector<float> k;
  std::vector<float> v;
  std::vector<float> query_scales;
  LeasedMemory norms[3];
  std::vector<float> cos_sin;
  std::vector<float> out;
  std::vector<float> scratch;
  std::vector<std::uint32_t> counters;
  cuda::PreparedRows prepared;
  std::uint32_t max_shared_bytes = 64 * 1024;
  std::uint32_t forbidden = ~0u;  ///< A sequence whose blocks may not be read.

 private:
  Leased<const float> weight(int i) const { return norms[i].at().as<const float>(); }
  RowBits with_blocks(RowBits bits) const {
    for (std::uint32_t s = 0; s < shape.lengths.size(); ++s)
      bits.kv.push_back(s == forbidden ? std::vector<std::byte>() : kv.bytes_of(s));
    return bits;
  }
};

void require_same(const RowBits& bits, const RowBits& expected) {
  REQUIRE(first_difference(bits.out, expected.out) == -1);
  for (std::size_t s = 0; s < expected.kv.size(); ++s) REQUIRE(bits.kv[s] == expected.kv[s]);
}

}  // namespace

TEST_CASE("cuda: a decode step's attention in one launch has the reference's bits") {
  for (const KvType type : {KvType::F16, KvType::F32, KvType::Q8_0})
    for (const std::uint32_t heads_per_kv : {1u, 3u, 7u})
      for (const std::uint32_t head_dim : {20u, 64u, 160u}) {
        if (!can_store(type, head_dim) || (head_dim == 160 && heads_per_kv > 1)) continue;
        const bool has_all = heads_per_kv == 3;
        const DecodeShape shape{.heads_per_kv = heads_per_kv,
                                .head_dim = head_dim,
                                .type = type,
                                .has_norms = has_all,
                                .has_query_scales = has_all,
                                .has_sinks = has_all,
                                .window = has_all ? 270u : 0u,
                                .softcap = has_all ? 30.0F : 0.0F};
        DecodeCase reference(shape);
        const RowBits expected = reference.by_reference();
        std::uint32_t n_sms = 0;
        for (const std::uint64_t order : kOrders) {
          CAPTURE(static_cast<int>(type), heads_per_kv, head_dim, order, test_seed());
          DecodeCase here(shape, 2);
          const auto launch = here.plan(n_sms);
          REQUIRE(std::string_view(launch.kernel).ends_with("_q1") ==
                  (n_sms > 0 || heads_per_kv == 1));
          require_same(here.run(launch, order), expected);
          REQUIRE(here.counters_are_zero());
          for (std::size_t i = here.step.n_rows() * here.width; i < here.out.size(); ++i)
            REQUIRE(is_poison(here.out[i]));
          n_sms = 10'000 - n_sms;
        }
      }
}

TEST_CASE("cuda: one launch serves one row or many, of one partition or of several") {
  for (const std::uint32_t n_rows : {1u, 2u, 8u, 9u, 33u}) {
    DecodeShape shape{.n_kv_heads = 1, .heads_per_kv = 2, .head_dim = 16};
    shape.lengths.assign(n_rows, 0);
    for (std::uint32_t row = 0; row < n_rows; ++row)
      shape.lengths[row] = row % 8 == 0 ? 257 + row : 1 + 5 * row;
    DecodeCase reference(shape);
    const RowBits expected = reference.by_reference();
    for (const std::uint64_t order : kOrders) {
      CAPTURE(n_rows, order, test_seed());
      DecodeCase here(shape);
      require_same(here.run(here.plan(), order), expected);
      REQUIRE(here.counters_are_zero());
    }
  }
}

TEST_CASE("cuda: a partition of one query is copied whole, with its values, or in rounds") {
  struct Memory {
    std::uint32_t n_sms;
    std::uint32_t max_shared_bytes;
    std::uint32_t n_rows;  ///< Rows of keys or values in shared memory.
  };
  for (const auto& [n_sms, max_shared_bytes, n_rows] :
       {Memory{1'000, 227 * 1024, 512}, Memory{0, 227 * 1024, 256}, Memory{0, 128 * 1024, 128},
        Memory{0, 64 * 1024, 64}})
    for (const std::uint32_t window : {0u, 300u}) {
      const DecodeShape shape{.head_dim = 128, .lengths = {300, 530, 1, 256}, .window = window};
      DecodeCase reference(shape);
      DecodeCase here(shape);
      here.max_shared_bytes = max_shared_bytes;
      const auto launch = here.plan(n_sms);
      const std::uint32_t row_bytes = device::kv_position_bytes(128, KvType::F16);
      CAPTURE(n_sms, max_shared_bytes, window, test_seed());
      REQUIRE(launch.shared_bytes / row_bytes >= n_rows);
      REQUIRE(launch.shared_bytes / row_bytes < n_rows + 16);
      require_same(here.run(launch), reference.by_reference());
      REQUIRE(here.counters_are_zero());
    }
}

TEST_CASE("cuda: one launch attends over keys that another layer stored, rotated or not") {
  for (const bool rotates : {false, true}) {
    const DecodeShape shape{.heads_per_kv = 2, .has_keys = false, .rotates = rotates};
    DecodeCase reference(shape);
    DecodeCase here(shape);
    const auto before = here.kv.bytes_of(0);
    require_same(here.run(here.plan()), reference.by_reference());
    REQUIRE(here.kv.bytes_of(0) == before);
  }
}

TEST_CASE("cuda: one launch stores its output as tiles, or rounded as a row is rounded") {
  for (const std::uint32_t block : {32u, 256u}) {
    DecodeCase here({.heads_per_kv = 4});
    const auto n_rows = static_cast<std::uint32_t>(here.step.n_rows());
    std::vector<std::uint64_t> memory(device::int8_rows_bytes(n_rows, here.width) / 8 + 1);
    std::vector<std::uint64_t> expected_memory(memory.size());
    const auto rows_in = [&](std::vector<std::uint64_t>& words) {
      return device::int8_rows_at(reinterpret_cast<std::byte*>(words.data()), n_rows, here.width,
                                  block);
    };
    TileMemory tiles(8, here.width);
    here.prepared = {.tiles = tiles.view(), .rounded = rows_in(memory)};
    const RowBits bits = here.run(here.plan(), 6);
    here.step.run(cuda::plan_round_rows({.gate = here.step.plan().gate,
                                         .n_in = here.width,
                                         .x = bits.out.data(),
                                         .n_results = n_rows},
                                        rows_in(expected_memory)));
    REQUIRE(memory == expected_memory);
    for (std::uint32_t i = 0; i < here.width; ++i) {
      const float value = bits.out[2 * here.width + i];
      REQUIRE(std::fabs(tiles.at(2, i) - value) <= 0x1p-11F * std::fabs(value) + 1e-8F);
    }
  }
}

TEST_CASE("cuda: a row revoked before, during or after its launch leaves the others' bits") {
  const DecodeShape shape{
      .heads_per_kv = 2, .type = GENERATE(KvType::F16, KvType::Q8_0), .lengths = {261, 530, 40}};
  const auto n_sms = GENERATE(0u, 10'000u);  // tiles of two queries, or of one
  constexpr std::uint32_t kRevoked = 1;
  DecodeCase reference(shape);
  const RowBits expected = reference.by_reference();
  const std::uint64_t n_blocks = block_count(DecodeCase(shape).plan(n_sms));
  for (const std::uint64_t order : kOrders)
    for (std::uint64_t at = 0; at <= n_blocks; at += 2) {
      CAPTURE(order, at, n_blocks, test_seed());
      DecodeCase here(shape);
      const BlockHookScope hook([&](std::uint64_t i) {
        if (i != at) return;
        here.step.mirror.live &= ~(std::uint64_t{1} << kRevoked);
        here.kv.forbid(kRevoked);
        here.forbidden = kRevoked;
      });
      const RowBits bits = here.run(here.plan(n_sms), order);
      REQUIRE(here.counters_are_zero());
      for (std::size_t i = 0; i < bits.out.size(); ++i) {
        if (i / here.width != kRevoked)
          REQUIRE(bits.out[i] == expected.out[i]);
        else
          REQUIRE((bits.out[i] == 0.0F || bits.out[i] == expected.out[i]));
      }
      REQUIRE(bits.kv[0] == expected.kv[0]);
      REQUIRE(bits.kv[2] == expected.kv[2]);
      if (at == 0) REQUIRE(bits.out[kRevoked * here.width] == 0.0F);
      if (at == n_blocks) require_same(bits, expected);
    }
}

TEST_CASE("cuda: a stopped launch, then cleared counters, then the step again have its bits") {
  const DecodeShape shape{.heads_per_kv = 2, .lengths = {261, 530, 40}};
  const auto n_sms = GENERATE(0u, 10'000u);  // tiles of two queries, or of one
  DecodeCase reference(shape);
  const RowBits expected = reference.by_reference();
  DecodeCase here(shape);
  const std::uint64_t n_blocks = block_count(here.plan(n_sms));
  bool was_half_full = false;
  for (std::uint64_t at = 0; at < n_blocks; at += 3) {
    CAPTURE(at, n_blocks, test_seed());
    const BlockHookScope hook([&](std::uint64_t i) {
      if (i == at) here.step.mirror.engine_stopped = 1;
    });
    here.run(here.plan(n_sms));
    was_half_full |= !here.counters_are_zero();
    here.step.mirror.engine_stopped = 0;
    std::ranges::fill(here.counters, 0);  // as the host does after a stop
    simt::set_block_hook({});
    require_same(here.run(here.plan(n_sms)), expected);
    REQUIRE(here.counters_are_zero());
  }
  REQUIRE(was_half_full);
}

TEST_CASE("cuda: rows of one sequence, latent keys, wide heads and long rows are not one launch") {
  DecodeCase c({});
  const auto fits = [&](const AttentionArgs& args, const cuda::AttentionPlanInput& input) {
    return cuda::is_one_launch(c.step.plan(), args, input);
  };
  const AttentionArgs args = c.attention(c.out.data());
  const cuda::AttentionPlanInput input = c.input(0);
  REQUIRE(fits(args, input));
  auto several_rows = input;
  several_rows.has_multi_row = true;
  REQUIRE_FALSE(fits(args, several_rows));
  auto few_counters = input;
  few_counters.n_counters = c.n_planned - 1;
  REQUIRE_FALSE(fits(args, few_counters));
  auto small_scratch = input;
  small_scratch.scratch_bytes -= 1;
  REQUIRE_FALSE(fits(args, small_scratch));
  auto large_scratch = input;
  large_scratch.scratch_bytes = std::uint64_t{1} << 40;
  large_scratch.longest = device::kMaxDecodePartitions * kPartitionPositions;
  REQUIRE(fits(args, large_scratch));
  large_scratch.longest += 1;
  REQUIRE_FALSE(fits(args, large_scratch));
  large_scratch.longest = 1;
  auto latent = args;
  latent.layout.latent_dim = 32;
  REQUIRE_FALSE(fits(latent, large_scratch));
  auto wide = args;
  wide.layout.head_dim = 288;
  REQUIRE_FALSE(fits(wide, large_scratch));
}

}  // namespace leasehold::testing
