#include "worker/model/transformer.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/expects.hpp"
#include "kernels/numerics/rope.hpp"

namespace leasehold {
namespace {

RopeAngles angles_of(const RopeConfig& config) {
  RopeAngles angles{.frequencies = rope_frequencies(config.dim, config.base)};
  if (config.scaling == RopeScaling::Yarn)
    angles = yarn_angles({.base = config.base,
                          .rope_dim = config.dim,
                          .factor = config.factor,
                          .original_context = config.original_context});
  if (config.scaling == RopeScaling::Linear)
    for (double& frequency : angles.frequencies) frequency /= config.factor;
  for (std::size_t i = 0; i < config.divisors.size(); ++i)
    angles.frequencies[i] /= config.divisors[i];
  return angles;
}

}  // namespace

BackendLimits backend_limits(const ModelConfig& config, std::uint32_t max_rows) {
  const std::uint32_t heads_width = config.n_heads * config.head_dim;
  return {.max_rows = max_rows,
          .max_context = config.n_context,
          .n_heads = config.n_heads,
          .head_dim = config.head_dim,
          .max_width = std::max({config.n_embd, config.n_ff, config.experts.n_ff, heads_width}),
          .n_experts = config.experts.n_experts};
}

Transformer::Scratch::Scratch(const ModelConfig& config, const Limits& limits)
    : groups(config.experts.n_experts, std::size_t{limits.max_rows} * config.experts.n_used) {
  const auto rows_of = [&](std::size_t width) {
    return ZeroedArray<float>(limits.max_rows * width);
  };
  const std::size_t heads_width = std::size_t{config.n_heads} * config.head_dim;
  const std::size_t kv_width = std::size_t{config.n_kv_heads} * config.head_dim;
  x = rows_of(config.n_embd);
  normed = rows_of(config.n_embd);
  q = rows_of(heads_width);
  k = rows_of(kv_width);
  v = rows_of(kv_width);
  attention = rows_of(heads_width);
  gate = rows_of(config.n_ff);
  up = rows_of(config.n_ff);
  cos_sin = rows_of(config.rope.dim);
  logits = ZeroedArray<float>(std::size_t{limits.max_logit_rows} * config.n_vocab);
  const ExpertConfig& experts = config.experts;
  if (experts.n_experts == 0) return;
  const std::size_t used = experts.n_used;
  scores = rows_of(experts.n_experts);
  chosen = ZeroedArray<std::uint32_t>(limits.max_rows * used);
  expert_weights = rows_of(used);
  expert_gate = rows_of(used * experts.n_ff);
  expert_up = rows_of(used * experts.n_ff);
  expert_out = rows_of(used * config.n_embd);
  shared_gate = rows_of(1);
}

Transformer::Transformer(const ModelConfig& config, KvType kv_type, Limits limits, Backend& backend)
    : config_(config),
      kv_layout_{.n_layers = config.n_layers,
                 .n_kv_heads = config.n_kv_heads,
                 .head_dim = config.head_dim,
                 .type = kv_type},
      limits_(limits),
      backend_(&backend),
      angles_(angles_of(config.rope)),
      scratch_(config, limits) {}

/// One forward pass: launches in order, and remembers whether anybody is left to launch for.
class Transformer::Pass {
 public:
  Pass(Transformer& model, const Weights& weights, const ForwardInput& input)
      : model_(model),
        weights_(weights),
        input_(input),
        context_{.gates = input.gates, .rows = input.rows},
        live_(input.gates->all()) {}

  LaunchStatus run() {
    embed();
    for (std::uint32_t i = 0; i < weights_.layers().size() && live_ != 0; ++i) {
      context_.layer = static_cast<std::uint16_t>(i);
      attention_block(weights_.layers()[i]);
      ffn_block(weights_.layers()[i]);
    }
    output_block();
    return {live_};
  }

 private:
  /// Runs one launch unless nobody is left.
  template <class Launch>
  void launch(Launch&& one) {
    if (live_ != 0) live_ &= one(*model_.backend_).live;
  }

  void embed() {
    launch([&](Backend& b) {
      return b.embedding(context_,
                         {weights_.token_embedding(), input_.tokens.data(), s().x.data()});
    });
  }

  void rms_norm(LaunchSite site, Leased<const float> weight) {
    launch([&](Backend& b) {
      return b.rms_norm(context_, {.site = site,
                                   .x = s().x.data(),
                                   .weight = weight,
                                   .out = s().normed.data(),
                                   .width = model_.config_.n_embd,
                                   .epsilon = model_.config_.rms_epsilon});
    });
  }

  /// Where a model norms its heads, each by itself.
  void norm_heads(LaunchSite site, Leased<const float> weight, float* heads,
                  std::uint32_t n_heads) {
    if (!weight) return;
    launch([&](Backend& b) {
      return b.rms_norm(context_, {.site = site,
                                   .x = heads,
                                   .weight = weight,
                                   .out = heads,
                                   .width = model_.config_.head_dim,
                                   .epsilon = model_.config_.rms_epsilon,
                                   .n_vectors = n_heads});
    });
  }

  void matmul(const MatmulArgs& args) {
    launch([&](Backend& b) { return b.matmul(context_, args); });
  }

  void rope(LaunchSite site, float* x, std::uint32_t n_heads) {
    launch([&](Backend& b) {
      return b.rope(context_, {.site = site,
                               .x = x,
                               .n_heads = n_heads,
                               .head_dim = model_.config_.head_dim,
                               .rope_dim = model_.config_.rope.dim,
                               .style = model_.config_.rope.style,
                               .cos_sin = s().cos_sin.data()});
    });
  }

  struct Projection {
    LaunchSite site;
    const WeightMatrix& weight;
    Leased<const float> bias;
  };
  void project(const Projection& projection, float* out) {
    matmul({.site = projection.site,
            .weight = projection.weight,
            .x = s().normed.data(),
            .out = out,
            .bias = projection.bias});
  }

  void attention_block(const LayerWeights& layer) {
    rms_norm(LaunchSite::AttentionNorm, layer.attention_norm);
    project({LaunchSite::QueryProjection, layer.query, layer.query_bias}, s().q.data());
    project({LaunchSite::KeyProjection, layer.key, layer.key_bias}, s().k.data());
    project({LaunchSite::ValueProjection, layer.value, layer.value_bias}, s().v.data());
    norm_heads(LaunchSite::QueryNorm, layer.query_norm, s().q.data(), model_.config_.n_heads);
    norm_heads(LaunchSite::KeyNorm, layer.key_norm, s().k.data(), model_.config_.n_kv_heads);
    rope(LaunchSite::QueryRope, s().q.data(), model_.config_.n_heads);
    rope(LaunchSite::KeyRope, s().k.data(), model_.config_.n_kv_heads);
    launch([&](Backend& b) {
      return b.kv_append(context_, {.layout = model_.kv_layout_,
                                    .k = s().k.data(),
                                    .v = s().v.data(),
                                    .block_tables = input_.block_tables});
    });
    attend();
    matmul({.site = LaunchSite::AttentionOutput,
            .weight = layer.attention_output,
            .x = s().attention.data(),
            .out = s().x.data(),
            .accumulate = true,
            .bias = layer.attention_output_bias});
  }

  void attend() {
    launch([&](Backend& b) {
      const auto head_dim = static_cast<float>(model_.config_.head_dim);
      return b.attention(context_, {.layout = model_.kv_layout_,
                                    .q = s().q.data(),
                                    .out = s().attention.data(),
                                    .n_heads = model_.config_.n_heads,
                                    .scale = 1.0f / std::sqrt(head_dim),
                                    .block_tables = input_.block_tables});
    });
  }

  void ffn_block(const LayerWeights& layer) {
    rms_norm(LaunchSite::FfnNorm, layer.ffn_norm);
    if (model_.config_.experts.n_experts == 0) return feed_forward(layer, s().x.data(), true);
    chosen_experts(layer);
    if (model_.config_.n_ff > 0) shared_expert(layer);
  }

  /// Of the normed rows, added to `out` or stored there.
  void feed_forward(const LayerWeights& layer, float* out, bool accumulate) {
    matmul({LaunchSite::FfnGate, layer.ffn_gate, s().normed.data(), s().gate.data()});
    matmul({LaunchSite::FfnUp, layer.ffn_up, s().normed.data(), s().up.data()});
    launch([&](Backend& b) {
      return b.swiglu(context_, {s().gate.data(), s().up.data(), model_.config_.n_ff});
    });
    matmul({.site = LaunchSite::FfnDown,
            .weight = layer.ffn_down,
            .x = s().gate.data(),
            .out = out,
            .accumulate = accumulate});
  }

  void chosen_experts(const LayerWeights& layer) {
    const ExpertConfig& experts = model_.config_.experts;
    matmul({LaunchSite::ExpertRouter, layer.expert_router, s().normed.data(), s().scores.data()});
    launch([&](Backend& b) {
      return b.expert_choice(context_, {.scores = s().scores.data(),
                                        .n_experts = experts.n_experts,
                                        .n_used = experts.n_used,
                                        .weights_sum_to_1 = experts.weights_sum_to_1,
                                        .chosen = s().chosen.data(),
                                        .weights = s().expert_weights.data()});
    });
    if (live_ == 0) return;  // a row may not have been chosen for
    const std::size_t n_items = context_.rows.size() * experts.n_used;
    const ExpertItems batch = s().groups.sort({s().chosen.data(), n_items});
    ExpertMatmulArgs args{.site = LaunchSite::ExpertGate,
                          .weight = layer.expert_gate,
                          .batch = batch,
                          .x = s().normed.data(),
                          .items_per_x = experts.n_used,
                          .out = s().expert_gate.data()};
    expert_matmul(args);
    args.site = LaunchSite::ExpertUp;
    args.weight = layer.expert_up;
    args.out = s().expert_up.data();
    expert_matmul(args);
    launch([&](Backend& b) {
      return b.swiglu(
          context_, {s().expert_gate.data(), s().expert_up.data(), experts.n_used * experts.n_ff});
    });
    expert_matmul({.site = LaunchSite::ExpertDown,
                   .weight = layer.expert_down,
                   .batch = batch,
                   .x = s().expert_gate.data(),
                   .items_per_x = 1,
                   .out = s().expert_out.data()});
    add_to_x(s().expert_weights.data(), experts.n_used, false);
  }

  void shared_expert(const LayerWeights& layer) {
    matmul(
        {LaunchSite::ExpertRouter, layer.shared_gate, s().normed.data(), s().shared_gate.data()});
    feed_forward(layer, s().expert_out.data(), false);
    add_to_x(s().shared_gate.data(), 1, true);
  }

  void expert_matmul(const ExpertMatmulArgs& args) {
    launch([&](Backend& b) { return b.expert_matmul(context_, args); });
  }

  void add_to_x(const float* weights, std::uint32_t n_terms, bool is_gate) {
    launch([&](Backend& b) {
      return b.weighted_sum(context_, {.x = s().expert_out.data(),
                                       .weights = weights,
                                       .out = s().x.data(),
                                       .n_terms = n_terms,
                                       .width = model_.config_.n_embd,
                                       .is_gate = is_gate});
    });
  }

  void output_block() {
    if (input_.logit_rows.empty()) return;
    rms_norm(LaunchSite::OutputNorm, weights_.output_norm());
    matmul({.site = LaunchSite::LmHead,
            .weight = weights_.output(),
            .x = s().normed.data(),
            .out = s().logits.data(),
            .select = input_.logit_rows});
  }

  Scratch& s() { return model_.scratch_; }

  Transformer& model_;
  const Weights& weights_;
  const ForwardInput& input_;
  LaunchContext context_;
  SequenceMask live_;
};

LaunchStatus Transformer::forward(const Weights& weights, const ForwardInput& input) {
  expects(input.rows.size() <= limits_.max_rows && input.tokens.size() == input.rows.size() &&
              input.logit_rows.size() <= limits_.max_logit_rows,
          "a step fits the scratch it was sized for");
  used_rows_ = std::max(used_rows_, input.rows.size());
  used_logit_rows_ = std::max(used_logit_rows_, input.logit_rows.size());
  fill_rope_cos_sin(input.rows, angles_, scratch_.cos_sin.data());
  return Pass(*this, weights, input).run();
}

std::span<const float> Transformer::logits(std::uint32_t i) const {
  return {scratch_.logits.data() + std::size_t{i} * config_.n_vocab, config_.n_vocab};
}

void Transformer::scrub() {
  const std::size_t rows = std::exchange(used_rows_, 0);
  const std::size_t logit_rows = std::exchange(used_logit_rows_, 0);
  for (ZeroedArray<float>* buffer :
       {&scratch_.x, &scratch_.normed, &scratch_.q, &scratch_.k, &scratch_.v, &scratch_.attention,
        &scratch_.gate, &scratch_.up, &scratch_.scores, &scratch_.expert_weights,
        &scratch_.expert_gate, &scratch_.expert_up, &scratch_.expert_out, &scratch_.shared_gate}) {
    const std::size_t width = buffer->size() / limits_.max_rows;
    std::fill_n(buffer->begin(), rows * width, 0.0f);
  }
  std::fill_n(scratch_.chosen.begin(), rows * config_.experts.n_used, 0u);
  std::fill_n(scratch_.logits.begin(), logit_rows * config_.n_vocab, 0.0f);
  backend_->scrub_scratch();
}

}  // namespace leasehold
