/// The feed-forward of a layer: dense, experts, or both, with their norms.
///
/// Source: Shazeer 2020 (gated units); Jiang et al. 2024 (Mixtral); Yang et al. 2024 (shared
/// experts); Gemma 4, llama.cpp src/models/gemma4.cpp (experts beside a dense feed-forward).
#pragma once

#include <cmath>

#include "kernels/backend.hpp"
#include "kernels/model/config.hpp"
#include "kernels/model/step_buffers.hpp"
#include "worker/model/adapter_products.hpp"
#include "worker/model/weights.hpp"

namespace leasehold {

/// The feed-forward of one layer for the rows of `context`. `Launch` runs a function of a Backend&
/// unless no sequence is live.
/// Lifetime: the arguments outlive the object.
template <class Launch>
class FeedForward {
 public:
  /// x: [n_rows, n_embd], the residual of the rows.
  FeedForward(const ModelConfig& config, const LayerWeights& layer, const StepBuffers& buffers,
              const AdapterProducts& adapters, const LaunchContext& context, float* x,
              Launch launch)
      : config_(config),
        layer_(layer),
        s_(buffers),
        adapters_(adapters),
        context_(context),
        x_(x),
        launch_(launch) {}

  /// Adds the feed-forward of x to x.
  void run() {
    if (!config_.experts.replace_ff(context_.layer)) return dense();
    norm(layer_.ffn_norm, x_, s_.normed);
    route();
    routed_experts();
    add_routed();
    if (config_.experts.n_shared_ff > 0) shared_expert();
  }

 private:
  /// The norm with what all norms of the residual share.
  RmsNormArgs residual_norm(RmsNormArgs args) const {
    args.site = LaunchSite::FfnNorm;
    args.width = config_.n_embd;
    args.epsilon = config_.rms_epsilon;
    args.is_centered = config_.centers_norms;
    return args;
  }
  void norm(const RmsNormArgs& args) {
    launch_([&](Backend& b) { return b.rms_norm(context_, residual_norm(args)); });
  }
  void norm(Leased<const float> weight, const float* from, float* to) {
    norm({.x = from, .weight = weight, .out = to});
  }

  void dense() {
    const bool has_norm = bool{layer_.ffn_norm};
    const bool has_output_norm = bool{layer_.ffn_output_norm};
    const RmsNormArgs input = residual_norm({.x = x_, .weight = layer_.ffn_norm, .out = s_.normed});
    run_dense({.norm = has_norm ? &input : nullptr,
               .x = has_norm ? s_.normed : x_,
               .out = has_output_norm ? s_.normed : x_,
               .accumulate = !has_output_norm});
    const bool has_experts = config_.experts.in_layer(context_.layer);
    if (has_experts) experts_beside();
    if (!has_output_norm) return;
    // The scale follows what the layer adds last.
    norm({.x = has_experts ? s_.experts.sum : s_.normed,
          .weight = layer_.ffn_output_norm,
          .out = x_,
          .accumulate = true,
          .out_scale = layer_.embedding_gate.data ? Leased<const float>{} : layer_.output_scale});
  }

  /// The rows that a dense feed-forward reads and writes. `norm` computes x; it is null if x is
  /// complete.
  struct Rows {
    const RmsNormArgs* norm;
    const float* x;
    float* out;
    bool accumulate;
  };
  void run_dense(const Rows& rows) {
    const bool has_gate = bool{layer_.ffn_gate.data};
    launch_([&](Backend& b) {
      return adapters_.feed_forward(
          b, context_,
          {.norm = rows.norm,
           .gate = {LaunchSite::FfnGate, has_gate ? layer_.ffn_gate : layer_.ffn_up, rows.x,
                    s_.gate},
           .up = {LaunchSite::FfnUp, has_gate ? layer_.ffn_up : WeightMatrix{}, rows.x, s_.up},
           .down = {LaunchSite::FfnDown, layer_.ffn_down, s_.gate, rows.out, rows.accumulate},
           .activation = config_.activation});
    });
  }

  /// Writes the norm of the dense result, which is in s.normed, plus the norm of the experts'
  /// result to s.experts.sum. The router and the experts read x through norms of their own.
  void experts_beside() {
    norm(layer_.dense_output_norm, s_.normed, s_.experts.sum);
    norm({.x = x_,
          .weight = layer_.router_norm,
          .out = s_.normed,
          .scale = 1.0f / std::sqrt(static_cast<float>(config_.n_embd))});
    route();
    norm(layer_.expert_input_norm, x_, s_.normed);
    routed_experts();
    add_experts({.weights = s_.experts.weights,
                 .out = s_.normed,
                 .n_terms = config_.experts.n_used,
                 .accumulate = false});
    norm({.x = s_.normed,
          .weight = layer_.expert_output_norm,
          .out = s_.experts.sum,
          .accumulate = true});
  }

  /// Chooses the experts of the rows in s.normed.
  void route() {
    const ExpertConfig& experts = config_.experts;
    matmul({.site = LaunchSite::ExpertRouter,
            .weight = layer_.expert_router,
            .x = s_.normed,
            .out = s_.experts.scores,
            .bias = layer_.expert_router_bias});
    launch_([&](Backend& b) {
      return b.expert_routing(context_,
                              {.scores = s_.experts.scores,
                               .n_experts = experts.n_experts,
                               .n_used = experts.n_used,
                               .normalize_expert_weights = experts.normalize_expert_weights,
                               .chosen = s_.experts.chosen,
                               .weights = s_.experts.weights,
                               .gating = experts.gating,
                               .selection_bias = layer_.expert_selection_bias,
                               .scale = experts.scale,
                               .n_groups = experts.n_groups,
                               .n_groups_used = experts.n_groups_used,
                               .expert_scales = layer_.expert_scales});
    });
  }

  /// Computes the chosen experts of the rows in s.normed.
  void routed_experts() {
    const ExpertConfig& experts = config_.experts;
    const auto n_items = static_cast<std::uint32_t>(context_.rows.size()) * experts.n_used;
    const bool is_latent = experts.n_latent > 0;
    if (is_latent) matmul({LaunchSite::ExpertUp, layer_.latent_down, s_.normed, s_.experts.latent});
    const bool has_gate = bool{layer_.expert_gate.data};
    ExpertMatmulArgs args{.site = LaunchSite::ExpertUp,
                          .weight = layer_.expert_up,
                          .n_experts = experts.n_experts,
                          .chosen = s_.experts.chosen,
                          .n_items = n_items,
                          .x = is_latent ? s_.experts.latent : s_.normed,
                          .items_per_x = experts.n_used,
                          .out = has_gate ? s_.experts.up : s_.experts.gate,
                          .bias = layer_.expert_up_bias};
    const float* up = args.out;
    expert_matmul(args);
    if (has_gate) {
      args.site = LaunchSite::ExpertGate;
      args.weight = layer_.expert_gate;
      args.out = s_.experts.gate;
      args.bias = layer_.expert_gate_bias;
      expert_matmul(args);
    }
    launch_([&](Backend& b) {
      return b.swiglu(context_,
                      {s_.experts.gate, up, experts.n_used * experts.n_ff, config_.activation});
    });
    expert_matmul({.site = LaunchSite::ExpertDown,
                   .weight = layer_.expert_down,
                   .n_experts = experts.n_experts,
                   .chosen = s_.experts.chosen,
                   .n_items = n_items,
                   .x = s_.experts.gate,
                   .items_per_x = 1,
                   .out = s_.experts.out,
                   .bias = layer_.expert_down_bias});
  }

  /// Adds the expert that computes every row, whose input is in s.normed.
  void shared_expert() {
    if (!layer_.shared_gate.data)
      return run_dense({.norm = nullptr, .x = s_.normed, .out = x_, .accumulate = true});
    matmul({LaunchSite::ExpertRouter, layer_.shared_gate, s_.normed, s_.experts.shared_gate});
    run_dense({.norm = nullptr, .x = s_.normed, .out = s_.experts.out, .accumulate = false});
    add_experts(
        {.weights = s_.experts.shared_gate, .out = x_, .n_terms = 1, .applies_sigmoid = true});
  }

  void matmul(const MatmulArgs& args) {
    launch_([&](Backend& b) { return b.matmul(context_, args); });
  }

  /// Multiplies each row by the matrices of its chosen experts.
  void expert_matmul(const ExpertMatmulArgs& args) {
    launch_([&](Backend& b) { return b.expert_matmul(context_, args); });
  }

  /// Adds the weighted results of the chosen experts to x.
  void add_routed() {
    WeightedSumArgs sum{
        .weights = s_.experts.weights, .out = x_, .n_terms = config_.experts.n_used};
    if (!layer_.latent_up.data) return add_experts(sum);
    sum.out = s_.experts.latent;
    sum.width = config_.experts.n_latent;
    sum.accumulate = false;
    add_experts(sum);
    matmul({LaunchSite::ExpertDown, layer_.latent_up, s_.experts.latent, x_, true});
  }

  /// Sums the results of experts, which are n_embd wide unless the sum says otherwise.
  void add_experts(WeightedSumArgs sum) {
    sum.x = s_.experts.out;
    if (sum.width == 0) sum.width = config_.n_embd;
    launch_([&](Backend& b) { return b.weighted_sum(context_, sum); });
  }

  const ModelConfig& config_;
  const LayerWeights& layer_;
  const StepBuffers& s_;
  const AdapterProducts& adapters_;
  const LaunchContext& context_;
  float* x_;  // [n_rows, n_embd]
  Launch launch_;
};

}  // namespace leasehold
