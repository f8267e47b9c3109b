/// Attention of prompts in register tiles has the reference's bits, and a row that is revoked
/// during the launch changes neither its memory nor other rows.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <string_view>

#include "kernels/cuda/device/attention_params.hpp"
#include "tests/unit/kernels/cuda/attention_case.hpp"

namespace leasehold::testing {
namespace {

/// A chunk of a prompt that ends in the second partition, another whole prompt, and a decode row:
/// rows of tiles are cut at multiples of the tile's rows, and by sequences.
const std::vector<std::uint32_t> kPromptCounts{70, 33, 1, 2};
const std::vector<std::uint32_t> kPromptLengths{290, 33, 40, 259};

/// One head per kv head has 32 rows per tile; 33 heads take two tiles of 17.
struct TileCase {
  std::uint32_t heads_per_kv;
  std::uint32_t head_dim;
};
const TileCase kTileCases[] = {{1, 128}, {1, 20},  {3, 64},  {1, 1},  {7, 64},
                               {1, 200}, {2, 256}, {33, 40}, {1, 33}, {5, 8}};

bool is_register_tile(const cuda::KernelLaunch& launch) {
  return std::string_view(launch.kernel).ends_with("_prompt");
}

}  // namespace

TEST_CASE("cuda: the register tile of prompts has the reference's bits for every width and type") {
  std::size_t order = 0;
  for (const KvType type : {KvType::F16, KvType::F32, KvType::Q8_0})
    for (const auto& [heads_per_kv, head_dim] : kTileCases) {
      const std::uint32_t width = type == KvType::Q8_0 ? (head_dim + 31) / 32 * 32 : head_dim;
      CAPTURE(static_cast<int>(type), heads_per_kv, width, test_seed());
      AttentionCase c({1, heads_per_kv, width, type, kPromptCounts, kPromptLengths});
      const auto launches = c.plan(true, 106);
      REQUIRE(is_register_tile(launches.front()));
      c.step.run(launches, kOrders[order++ % std::size(kOrders)]);
      REQUIRE(first_difference(c.of_rows(), c.expected()) == -1);
    }
}

TEST_CASE("cuda: the register tile keeps windows, soft caps and the parts of a prompt") {
  for (const std::uint32_t window : {1u, 5u, 31u, 40u, 257u, 270u})
    for (const std::uint32_t rows_at_once : {31u, 106u}) {
      CAPTURE(window, rows_at_once, test_seed());
      AttentionCase c({.n_kv_heads = 2,
                       .heads_per_kv = 2,
                       .head_dim = 32,
                       .type = KvType::F16,
                       .counts = kPromptCounts,
                       .lengths = kPromptLengths,
                       .window = window,
                       .softcap = window % 2 == 0 ? 30.0F : 0.0F});
      const auto launches = c.plan(true, rows_at_once);
      REQUIRE(is_register_tile(launches.front()));
      c.step.run(launches, window);
      REQUIRE(first_difference(c.of_rows(), c.expected()) == -1);
    }
}

TEST_CASE("cuda: a prompt's launch has a block for each tile, and few more") {
  AttentionCase c({2, 1, 128, KvType::F16, {512}, {512}});
  const auto launches = c.plan(true, 512);
  REQUIRE(launches.front().grid.z == 512 / device::kPromptQueries + 1);
  REQUIRE(block_count(launches.front()) == std::uint64_t{2} * 2 * 17);
  c.step.run(launches);
  REQUIRE(first_difference(c.of_rows(), c.expected()) == -1);
}

TEST_CASE("cuda: a card without room for the register tile computes prompts in tiles of eight") {
  for (const auto& [head_dim, has_room] : {std::pair(64u, true), std::pair(128u, false)}) {
    AttentionCase c({1, 2, head_dim, KvType::F16, {9, 3}, {270, 20}});
    c.max_shared_bytes = 64 * 1024;
    const auto launches = c.plan(true, 12);
    REQUIRE(is_register_tile(launches.front()) == has_room);
    REQUIRE(launches.front().shared_bytes < c.max_shared_bytes);
    c.step.run(launches);
    REQUIRE(first_difference(c.of_rows(), c.expected()) == -1);
  }
}

TEST_CASE("cuda: a row of a prompt that is revoked during its launch leaves the others' bits") {
  const auto type = GENERATE(KvType::F16, KvType::Q8_0);
  const AttentionShape shape{2, 1, 32, type, {40, 35, 34}, {290, 35, 260}};
  constexpr std::uint32_t kRevoked = 1;
  AttentionCase reference(shape);
  const auto expected = reference.expected();
  const std::uint64_t n_blocks = block_count(reference.plan(true, 109).front());
  for (const std::uint64_t order : kOrders)
    for (std::uint64_t at = 0; at <= n_blocks; at += 3) {
      CAPTURE(order, at, n_blocks, test_seed());
      AttentionCase c(shape);
      const auto launches = c.plan(true, 109);
      const auto revoke = [&] {
        c.step.mirror.live &= ~(std::uint64_t{1} << kRevoked);
        c.kv.forbid(kRevoked);
      };
      {
        const BlockHookScope hook([&](std::uint64_t i) {
          if (i == at) revoke();
        });
        c.step.run(launches.front(), order);
      }
      if (at >= n_blocks) revoke();
      c.step.run(launches.back(), order);
      for (std::size_t i = 0; i < c.out.size(); ++i) {
        const bool is_revoked = c.step.rows()[i / c.row_floats()].sequence == kRevoked;
        REQUIRE(is_poison(c.out[i]) == is_revoked);
        if (!is_revoked) REQUIRE(c.out[i] == expected[i]);
      }
    }
}

TEST_CASE("cuda: a stopped launch of a prompt stores nothing more, and the next has its bits") {
  AttentionCase c({2, 1, 32, KvType::F16, {40, 35}, {290, 35}});
  const auto expected = c.expected();
  const std::uint64_t n_blocks = block_count(c.plan(true, 75).front());
  for (std::uint64_t at = 0; at < n_blocks; at += 2) {
    CAPTURE(at, test_seed());
    std::ranges::fill(c.out, poisoned(1).front());
    const auto launches = c.plan(true, 75);
    std::vector<float> stored;
    {
      const BlockHookScope hook([&](std::uint64_t i) {
        if (i == at) {
          c.step.mirror.engine_stopped = 1;
          stored = c.scratch;
        }
      });
      c.step.run(launches.front());
    }
    REQUIRE(std::memcmp(stored.data(), c.scratch.data(), stored.size() * sizeof(float)) == 0);
    c.step.run(launches.back());
    for (const float value : c.out) REQUIRE(is_poison(value));
    c.step.mirror.engine_stopped = 0;
    c.step.run(launches);
    REQUIRE(first_difference(c.of_rows(), expected) == -1);
  }
}

}  // namespace leasehold::testing
