/// CUDA attention has the reference's bits, whichever queries share a block.
#include <catch2/catch.hpp>
#include <cmath>
#include <string_view>

#include "tests/unit/kernels/cuda/attention_case.hpp"

namespace leasehold::testing {
namespace {

const AttentionShape kMixed{2, 3, 40, KvType::F16, {5, 1, 11}, {261, 18, 530}};
const AttentionShape kMixedQ8{2, 3, 96, KvType::Q8_0, {5, 1, 11}, {261, 18, 530}};

std::vector<std::uint32_t> widths_of(KvType type) {
  if (type == KvType::Q8_0) return {32, 64, 96, 128, 160, 256};
  return {1, 8, 20, 33, 64, 80, 128, 200, 256};
}

}  // namespace

TEST_CASE("cuda: attention has the reference's bits for every shape") {
  const std::vector<std::uint32_t> counts{3, 1};
  const std::vector<std::uint32_t> lengths{258, 21};
  for (const KvType type : {KvType::F16, KvType::F32, KvType::Q8_0})
    for (const std::uint32_t head_dim : widths_of(type))
      for (const std::uint32_t heads_per_kv : {1u, 3u, 7u, 12u}) {
        if (head_dim > 128 && heads_per_kv > 1) continue;  // too slow on the CPU
        CAPTURE(static_cast<int>(type), head_dim, heads_per_kv, test_seed());
        AttentionCase c(
            {heads_per_kv > 3 ? 1u : 2u, heads_per_kv, head_dim, type, counts, lengths});
        const auto expected = c.expected();
        for (const bool has_multi_row : {false, true}) {
          c.step.run(c.plan(has_multi_row, 4));
          REQUIRE(first_difference(c.of_rows(), expected) == -1);
        }
        c.n_sms = 10'000;
        const auto launches = c.plan(false, 4);
        REQUIRE(std::string_view(launches.front().kernel).ends_with("_q1"));
        c.step.run(launches);
        REQUIRE(first_difference(c.of_rows(), expected) == -1);
      }
}

TEST_CASE("cuda: one query has the reference's bits on cards with less shared memory") {
  for (const std::uint32_t max_shared_bytes : {64u * 1024, 99u * 1024, 163u * 1024})
    for (const KvType type : {KvType::F16, KvType::F32, KvType::Q8_0})
      for (const std::uint32_t head_dim : {64u, 224u, 256u}) {
        CAPTURE(max_shared_bytes, static_cast<int>(type), head_dim, test_seed());
        AttentionCase c({1, 1, head_dim, type, {1, 1}, {300, 45}});
        c.n_sms = 10'000;
        c.max_shared_bytes = max_shared_bytes;
        const auto expected = c.expected();
        c.step.run(c.plan(false, 2));
        REQUIRE(first_difference(c.of_rows(), expected) == -1);
      }
}

TEST_CASE("cuda: wide heads and latent values have the reference's bits") {
  for (const KvType type : {KvType::F16, KvType::F32, KvType::Q8_0})
    for (const auto& [head_dim, latent_dim] :
         {std::pair(96u, 64u), std::pair(288u, 256u), std::pair(576u, 512u), std::pair(512u, 0u)})
      for (const std::uint32_t n_heads : {3u, 10u}) {
        CAPTURE(static_cast<int>(type), head_dim, latent_dim, n_heads, test_seed());
        AttentionCase c({1, n_heads, head_dim, type, {3, 1}, {259, 21}, latent_dim});
        const auto expected = c.expected();
        for (const bool has_multi_row : {false, true}) {
          c.n_sms = has_multi_row ? 0 : 10'000;
          c.step.run(c.plan(has_multi_row, 4));
          REQUIRE(first_difference(c.of_rows(), expected) == -1);
        }
      }
}

TEST_CASE("cuda: attention over more than 32 partitions has the reference's bits") {
  for (const std::uint32_t head_dim : {6u, 8u}) {
    AttentionCase c({1, 3, head_dim, KvType::F16, {2}, {8705}});
    const auto expected = c.expected();
    TileMemory tiles(8, static_cast<std::uint32_t>(c.row_floats()));
    c.step.run(c.plan(false, 2));
    REQUIRE(first_difference(c.of_rows(), expected) == -1);
    c.step.run(c.plan(true, 2, tiles.view()), 9);
    REQUIRE(first_difference(c.of_rows(), expected) == -1);
  }
}

TEST_CASE("cuda: attention in several launches, or in another order, has the same bits") {
  AttentionCase c(GENERATE(as<AttentionShape>(), kMixed, kMixedQ8), 3);
  const auto expected = c.expected();
  for (const std::uint32_t rows : {1u, 4u, 17u, 64u})
    for (const bool has_multi_row : {false, true}) {
      CAPTURE(rows, has_multi_row);
      c.step.run(c.plan(has_multi_row, rows), rows);
      REQUIRE(first_difference(c.of_rows(), expected) == -1);
    }
  for (std::size_t i = c.step.n_rows() * c.row_floats(); i < c.out.size(); ++i)
    REQUIRE(is_poison(c.out[i]));
}

TEST_CASE("cuda: attention reads no memory of a dead sequence and writes none of its rows") {
  AttentionCase c(GENERATE(as<AttentionShape>(), kMixed, kMixedQ8));
  const auto expected = c.expected();
  c.step.mirror.live = 0b010;
  c.kv.forbid(0);
  c.kv.forbid(2);
  c.step.run(c.plan(true, 17));
  for (std::size_t i = 0; i < c.out.size(); ++i) {
    const bool is_dead = c.step.is_dead(i / c.row_floats());
    REQUIRE(is_poison(c.out[i]) == is_dead);
    if (!is_dead) REQUIRE(c.out[i] == expected[i]);
  }
}

TEST_CASE("cuda: a NaN at a later position of the cache reaches no earlier row") {
  AttentionCase c({1, 1, 16, KvType::F32, {6}, {30}});
  const auto expected = c.expected();
  std::vector<float> nans(16, std::nanf(""));
  // The value of the last row. Earlier rows share its tile and must not read it.
  auto* block = reinterpret_cast<std::byte*>(c.tables.addresses[1]);
  std::memcpy(block + c.kv.layout.layer(DeviceStep::kLayer).head_offset_bytes(1, 0) + 13 * 16 * 4,
              nans.data(), 16 * sizeof(float));
  c.step.run(c.plan(true, 6));
  for (std::size_t i = 0; i < c.out.size(); ++i) {
    if (i < 5 * c.row_floats())
      REQUIRE(c.out[i] == expected[i]);
    else
      REQUIRE(std::isnan(c.out[i]));
  }
}

TEST_CASE("cuda: an infinite or NaN scale of a later position reaches no earlier row") {
  const Half scale = GENERATE(Half{0x7C00}, Half{0x7E00});
  const auto plane = GENERATE(0u, 1u);
  CAPTURE(scale, plane);
  AttentionCase c({1, 2, 64, KvType::Q8_0, {6}, {30}});
  const auto expected = c.expected();
  auto* block = reinterpret_cast<std::byte*>(c.tables.addresses[1]);
  std::byte* head = block + c.kv.layout.layer(DeviceStep::kLayer).head_offset_bytes(plane, 0);
  // Of the last row; the codes of such a scale are 0.
  std::memset(head + c.kv.shape.entry_offset_bytes(13) + 32, 0, 32);
  std::memcpy(head + c.kv.shape.scales_offset_bytes(13) + sizeof scale, &scale, sizeof scale);
  for (const bool has_multi_row : {false, true}) {
    c.step.run(c.plan(has_multi_row, 6));
    for (std::size_t i = 0; i < c.out.size(); ++i) {
      const bool is_earlier = i < 5 * c.row_floats();
      const bool is_reached = plane == 0 || i % 64 >= 32;
      if (is_earlier)
        REQUIRE(c.out[i] == expected[i]);
      else
        REQUIRE(std::isnan(c.out[i]) == is_reached);
    }
  }
}

TEST_CASE("cuda: codes times scales of every size are the values that the reference reads") {
  // One position: its weight is 1, and the output is the value.
  AttentionCase c({1, 1, 256, KvType::Q8_0, {1}, {1}});
  auto* block = reinterpret_cast<std::byte*>(c.tables.addresses[0]);
  std::byte* head = block + c.kv.layout.layer(DeviceStep::kLayer).head_offset_bytes(1, 0);
  for (int i = 0; i < 256; ++i) head[i] = static_cast<std::byte>(std::clamp(i - 128, -127, 127));
  for (std::uint32_t half = 0; half <= 0x7C00; half += half < 0x7B00 ? 251 : 8) {
    for (std::uint32_t block_of_32 = 0; block_of_32 < 8; ++block_of_32) {
      const auto scale = static_cast<Half>(half < 0x7C00 ? half ^ block_of_32 : 0x7BFF);
      std::memcpy(head + c.kv.shape.scales_offset_bytes(0) + block_of_32 * sizeof scale, &scale,
                  sizeof scale);
    }
    CAPTURE(half);
    const auto expected = c.expected();
    c.step.run(c.plan(false, 1));
    REQUIRE(first_difference(c.of_rows(), expected) == -1);
  }
}

TEST_CASE("cuda: attention also stores its output as tiles") {
  AttentionCase c(kMixed);
  const auto expected = c.expected();
  TileMemory tiles(24, static_cast<std::uint32_t>(c.row_floats()));
  c.step.run(c.plan(true, 6, tiles.view()));
  REQUIRE(first_difference(c.of_rows(), expected) == -1);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto row = static_cast<std::uint32_t>(i / c.row_floats());
    const float value = tiles.at(row, static_cast<std::uint32_t>(i % c.row_floats()));
    REQUIRE(std::fabs(value - expected[i]) <= 0x1p-11F * std::fabs(expected[i]) + 1e-8F);
  }
}

}  // namespace leasehold::testing
