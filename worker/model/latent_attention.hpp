/// The matmuls of latent attention around the operators that all layers share
/// (kernels/model/latent_config.hpp has the formulas).
#pragma once

#include "kernels/backend.hpp"
#include "kernels/model/config.hpp"
#include "kernels/model/step_buffers.hpp"
#include "worker/model/weights.hpp"

namespace leasehold {

/// One layer of a pass. `Launch` runs a function of a Backend& unless no sequence is live.
/// Lifetime: the arguments outlive the object.
template <class Launch>
class LatentAttention {
 public:
  LatentAttention(const ModelConfig& config, const LayerWeights& layer, const StepBuffers& buffers,
                  const LaunchContext& context, Launch launch)
      : config_(config), layer_(layer), s_(buffers), context_(context), launch_(launch) {}

  /// Computes s.q and s.k of the rows, before their norm and rotation. `norm` computes s.normed.
  void queries_and_keys(const RmsNormArgs& norm) {
    launch_([&](Backend& b) { return b.rms_norm(context_, norm); });
    const MatmulArgs key{LaunchSite::KeyProjection, layer_.key, s_.normed, s_.k};
    const float* x = s_.normed;
    if (config_.latent.query_rank > 0) {
      x = s_.latent.query;
      const MatmulArgs matmuls[] = {
          {LaunchSite::QueryProjection, layer_.latent_query, s_.normed, s_.latent.query}, key};
      launch_([&](Backend& b) { return b.project(context_, {.matmuls = matmuls}); });
      norm_latent_query();
    } else {
      launch_([&](Backend& b) { return b.matmul(context_, key); });
    }
    launch_([&](Backend& b) {
      return b.matmul(context_,
                      {LaunchSite::QueryProjection, layer_.query, x, s_.latent.unrotated});
    });
    multiply_heads({.site = LaunchSite::QueryProjection,
                    .weight = layer_.rotated_query,
                    .x = x,
                    .items_per_x = config_.n_heads,
                    .out = s_.q + config_.latent.rank,
                    .out_stride = config_.head_dim});
    multiply_heads({.site = LaunchSite::KeyProjection,
                    .weight = layer_.head_keys,
                    .x = s_.latent.unrotated,
                    .items_per_x = 1,
                    .out = s_.q,
                    .out_stride = config_.head_dim});
  }

  /// Computes s.latent.values of the rows from s.attention.
  void head_values() {
    multiply_heads({.site = LaunchSite::ValueProjection,
                    .weight = layer_.head_values,
                    .x = s_.attention,
                    .items_per_x = 1,
                    .out = s_.latent.values});
  }

 private:
  void norm_latent_query() {
    launch_([&](Backend& b) {
      return b.rms_norm(context_, {.site = LaunchSite::QueryNorm,
                                   .x = s_.latent.query,
                                   .weight = layer_.latent_query_norm,
                                   .out = s_.latent.query,
                                   .width = config_.latent.query_rank,
                                   .epsilon = config_.head_epsilon});
    });
  }

  /// Multiplies each row by one matrix per head.
  void multiply_heads(ExpertMatmulArgs args) {
    args.n_experts = config_.n_heads;
    args.n_items = static_cast<std::uint32_t>(context_.rows.size()) * config_.n_heads;
    launch_([&](Backend& b) { return b.expert_matmul(context_, args); });
  }

  const ModelConfig& config_;
  const LayerWeights& layer_;
  const StepBuffers& s_;
  const LaunchContext& context_;
  Launch launch_;
};

}  // namespace leasehold
