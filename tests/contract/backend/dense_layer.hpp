/// A dense layer in int8 arithmetic, as a model runs it.
#pragma once

#include <algorithm>
#include <vector>

#include "tests/contract/backend/grouped_matrix.hpp"
#include "tests/contract/backend/rig.hpp"

namespace leasehold::testing {

/// Eight query heads share two kv heads. Lifetime: neither copied nor moved.
class DenseLayer {
 public:
  static constexpr std::uint32_t kHeads = 8;
  static constexpr std::uint32_t kKvHeads = 2;
  static constexpr std::uint32_t kHeadDim = 32;
  static constexpr std::uint32_t kWidth = kHeads * kHeadDim;
  static constexpr std::uint32_t kFfWidth = 512;

  /// Sequence s has `counts[s]` rows in the step. The last one is at `lengths[s] - 1`.
  DenseLayer(std::uint64_t seed, const std::vector<std::uint32_t>& counts,
             const std::vector<std::uint32_t>& lengths, TensorType type = TensorType::Q8_0)
      : random_(seed),
        rows(rows_of(counts, lengths)),
        kv(random_,
           KvLayout(2, {.n_kv_heads = kKvHeads, .head_dim = kHeadDim, .type = KvType::F16}),
           lengths),
        query_(random_, type, kWidth, kWidth),
        key_(random_, type, kKvHeads * kHeadDim, kWidth),
        value_(random_, type, kKvHeads * kHeadDim, kWidth),
        output_(random_, type, kWidth, kWidth),
        gate_(random_, type, kFfWidth, kWidth),
        up_(random_, type, kFfWidth, kWidth),
        down_(random_, type, kWidth, kFfWidth),
        gain_(kWidth * sizeof(float)),
        head_gain_(kHeadDim * sizeof(float)),
        wide_bias_(kFfWidth * sizeof(float)),
        cos_sin_(random_floats(random_, rows.size() * kHeadDim)),
        x(random_floats(random_, rows.size() * kWidth)),
        q(rows.size() * kWidth),
        k(rows.size() * kKvHeads * kHeadDim),
        v(k.size()),
        normed_(x.size()),
        attended_(x.size()),
        wide_gate_(rows.size() * kFfWidth),
        wide_up_(wide_gate_.size()) {
    gain_.fill<float>(random_floats(random_, kWidth));
    head_gain_.fill<float>(random_floats(random_, kHeadDim));
    wide_bias_.fill<float>(random_floats(random_, kFfWidth));
  }

  LaunchContext context(const GateSet& gates) const {
    return {.gates = &gates, .rows = rows, .layer = 1};
  }

  LaunchStatus project_normed(Backend& backend, const GateSet& gates) {
    const RmsNormArgs norm = norm_to(LaunchSite::AttentionNorm);
    const MatmulArgs matmuls[] = {product(LaunchSite::QueryProjection, query_, q),
                                  product(LaunchSite::KeyProjection, key_, k),
                                  product(LaunchSite::ValueProjection, value_, v)};
    return backend.project(context(gates), {.norm = &norm, .matmuls = matmuls});
  }

  HeadsArgs heads() {
    return {
        .layout = kv.layout.layer(1),
        .q = q.data(),
        .k = k.data(),
        .v = v.data(),
        .n_heads = kHeads,
        .query_norm = has_head_norms ? head_gain_.at().as<const float>() : Leased<const float>(),
        .key_norm = has_head_norms ? head_gain_.at().as<const float>() : Leased<const float>(),
        .epsilon = 1e-5F,
        .rope_dim = kHeadDim,
        .style = style,
        .cos_sin = cos_sin_.data(),
        .block_tables = kv.block_tables()};
  }

  LaunchStatus attention(Backend& backend, const GateSet& gates) {
    const WeightMatrix next = output_.view();
    return backend.prepare_and_attend(context(gates), heads(),
                                      {.layout = kv.layout.layer(1),
                                       .q = q.data(),
                                       .out = attended_.data(),
                                       .n_heads = kHeads,
                                       .scale = 0.2F,
                                       .block_tables = kv.block_tables(),
                                       .next = &next});
  }

  FeedForwardArgs feed_forward(const RmsNormArgs& norm) {
    FeedForwardArgs args{.norm = &norm,
                         .gate = product(LaunchSite::FfnGate, gate_, wide_gate_),
                         .up = product(LaunchSite::FfnUp, up_, wide_up_),
                         .down = {.site = LaunchSite::FfnDown,
                                  .weight = down_.view(),
                                  .x = wide_gate_.data(),
                                  .out = x.data(),
                                  .accumulate = true}};
    if (has_wide_bias) args.gate.bias = args.up.bias = wide_bias_.at().as<const float>();
    return args;
  }
  RmsNormArgs norm_to(LaunchSite site) {
    return {.site = site,
            .x = x.data(),
            .weight = gain_.at().as<const float>(),
            .out = normed_.data(),
            .width = kWidth,
            .epsilon = 1e-5F};
  }

  /// All of the layer. Stops when no sequence is live.
  SequenceMask run(Backend& backend, const GateSet& gates) {
    SequenceMask live = project_normed(backend, gates).live;
    if (live != 0) live &= attention(backend, gates).live;
    if (live != 0)
      live &= backend
                  .matmul(context(gates), {.site = LaunchSite::AttentionOutput,
                                           .weight = output_.view(),
                                           .x = attended_.data(),
                                           .out = x.data(),
                                           .accumulate = true})
                  .live;
    const RmsNormArgs norm = norm_to(LaunchSite::FfnNorm);
    if (live != 0) live &= backend.feed_forward(context(gates), feed_forward(norm)).live;
    return live;
  }

 private:
  MatmulArgs product(LaunchSite site, const GroupedMatrix& weight, std::vector<float>& out) {
    return {.site = site, .weight = weight.view(), .x = normed_.data(), .out = out.data()};
  }

  SeededRandom random_;

 public:
  std::vector<RowRef> rows;
  KvFixture kv;
  bool has_head_norms = false;
  bool has_wide_bias = false;  ///< Of gate and up.
  RopeStyle style = RopeStyle::Halves;

 private:
  GroupedMatrix query_;
  GroupedMatrix key_;
  GroupedMatrix value_;
  GroupedMatrix output_;
  GroupedMatrix gate_;
  GroupedMatrix up_;
  GroupedMatrix down_;
  LeasedMemory gain_;
  LeasedMemory head_gain_;
  LeasedMemory wide_bias_;
  std::vector<float> cos_sin_;

 public:
  std::vector<float> x;  // [rows, kWidth]: what the layer changes
  std::vector<float> q;  // [rows, kWidth]
  std::vector<float> k;  // [rows, kKvHeads, kHeadDim]
  std::vector<float> v;  // likewise

 private:
  std::vector<float> normed_;
  std::vector<float> attended_;
  std::vector<float> wide_gate_;
  std::vector<float> wide_up_;
};

}  // namespace leasehold::testing
