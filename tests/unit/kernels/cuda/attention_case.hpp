/// A step's attention in pairs of launches, for tests that compare it with the reference backend.
#pragma once

#include <cmath>
#include <vector>

#include "kernels/cuda/plan/attention_plan.hpp"
#include "tests/unit/kernels/cuda/device_step.hpp"

namespace leasehold::testing {

/// What a step has: `counts` rows of each sequence, the last of them at its length.
struct AttentionShape {
  std::uint32_t n_kv_heads;
  std::uint32_t heads_per_kv;
  std::uint32_t head_dim;
  KvType type;
  std::vector<std::uint32_t> counts;
  std::vector<std::uint32_t> lengths;
  std::uint32_t latent_dim = 0;
  std::uint32_t window = 0;
  float softcap = 0.0F;
};

/// A step whose keys, values and queries are random, and its attention in pairs of launches.
struct AttentionCase {
  explicit AttentionCase(const AttentionShape& shape, std::uint32_t spare = 0)
      : random(test_seed() + 77),
        step(rows_of(shape.counts, shape.lengths), static_cast<std::uint32_t>(shape.lengths.size()),
             spare),
        kv(random,
           KvLayout(2, {.n_kv_heads = shape.n_kv_heads,
                        .head_dim = shape.head_dim,
                        .type = shape.type,
                        .latent_dim = shape.latent_dim}),
           shape.lengths),
        tables(kv),
        n_heads(shape.n_kv_heads * shape.heads_per_kv),
        window(shape.window),
        softcap(shape.softcap),
        n_runs(static_cast<std::uint32_t>(shape.counts.size())),
        q(random_floats(random, step.n_rows() * row_floats(), 2.0F)),
        out(poisoned((step.n_rows() + spare) * out_floats())) {}

  std::size_t row_floats() const { return std::size_t{n_heads} * kv.shape.head_dim; }
  std::size_t out_floats() const { return std::size_t{n_heads} * kv.shape.value_dim(); }
  AttentionArgs args(float* to) const {
    return {.layout = kv.layout.layer(DeviceStep::kLayer),
            .q = q.data(),
            .out = to,
            .n_heads = n_heads,
            .scale = 1.0F / std::sqrt(static_cast<float>(kv.shape.head_dim)),
            .block_tables = kv.block_tables(),
            .window = window,
            .softcap = softcap};
  }
  std::vector<float> expected() {
    std::vector<float> to(step.n_rows() * out_floats());
    step.reference().attention(step.context(), args(to.data()));
    return to;
  }
  /// Scratch for `rows` rows at a time.
  std::vector<cuda::KernelLaunch> plan(bool has_multi_row, std::uint32_t rows,
                                       device::TileRows tiles = {}) {
    const auto row_bytes = cuda::attention_scratch_bytes_per_row(args(nullptr), step.step.longest);
    scratch = poisoned(rows * row_bytes / sizeof(float));
    return cuda::plan_attention(step.plan(), args(out.data()),
                                {.tables = tables.view(),
                                 .scratch = scratch.data(),
                                 .scratch_bytes = rows * row_bytes,
                                 .longest = step.step.longest,
                                 .has_multi_row = has_multi_row,
                                 .n_runs = n_runs,
                                 .n_sms = n_sms,
                                 .max_shared_bytes = max_shared_bytes,
                                 .prepared = {.tiles = tiles}});
  }
  std::vector<float> of_rows() const {
    return {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(step.n_rows() * out_floats())};
  }

  SeededRandom random;
  DeviceStep step;
  KvFixture kv;
  DeviceTables tables;
  std::uint32_t n_heads;
  std::uint32_t window;
  float softcap;
  std::uint32_t n_runs;
  std::uint32_t n_sms = 0;
  std::uint32_t max_shared_bytes = 227 * 1024;
  std::vector<float> q;
  std::vector<float> out;
  std::vector<float> scratch;
};

}  // namespace leasehold::testing
