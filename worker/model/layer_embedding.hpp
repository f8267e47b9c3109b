/// The embeddings of tokens that each layer of a model has besides the model's own.
///
/// The embedding of a layer is the mean of two vectors, times √2: a row of a table, and the norm of
/// a projection of the model's embedding. A layer adds it to the residual after its feed-forward,
/// gated by the residual.
/// Source: Gemma 4; llama.cpp, src/models/gemma4.cpp.
#pragma once

#include <cmath>

#include "kernels/backend.hpp"
#include "kernels/model/config.hpp"
#include "kernels/model/step_buffers.hpp"
#include "worker/model/weights.hpp"

namespace leasehold {

/// `Launch` runs a function of a Backend& unless no sequence is live.
/// Lifetime: the arguments outlive the object.
template <class Launch>
class LayerEmbedding {
 public:
  LayerEmbedding(const ModelConfig& config, const StepBuffers& buffers,
                 const LaunchContext& context, Launch launch)
      : config_(config), s_(buffers), context_(context), launch_(launch) {}

  /// Computes the embeddings of all layers for all rows of the step, from the model's embedding in
  /// the residual.
  void compute(const LayerEmbeddingWeights& weights, const std::int32_t* tokens) {
    launch_([&](Backend& b) {
      return b.embedding(context_,
                         {.table = weights.table,
                          .tokens = tokens,
                          .out = s_.embedding.all,
                          .scale = std::sqrt(static_cast<float>(config_.n_layer_embd) / 2.0f)});
    });
    matmul(weights.projection, s_.x, s_.embedding.projection);
    // The norm's input is the projection divided by sqrt(n_embd), which only changes epsilon.
    launch_([&](Backend& b) {
      return b.rms_norm(context_,
                        {.site = LaunchSite::LayerEmbedding,
                         .x = s_.embedding.projection,
                         .weight = weights.norm,
                         .out = s_.embedding.all,
                         .width = config_.n_layer_embd,
                         .epsilon = config_.rms_epsilon * static_cast<float>(config_.n_embd),
                         .scale = std::sqrt(0.5f),
                         .accumulate = true,
                         .vectors_per_row = config_.n_layers});
    });
  }

  /// Computes what the layer of the context adds to the rows `x`, before its norm, in s.normed.
  /// `first_row` is the index of the first row in the step.
  void project(const LayerWeights& layer, const float* x, std::size_t first_row) {
    const std::uint32_t stride = config_.n_layers * config_.n_layer_embd;
    const std::size_t at = first_row * stride + std::size_t{context_.layer} * config_.n_layer_embd;
    float* const gate = s_.embedding.projection;  // of no use since `compute`
    matmul(layer.embedding_gate, x, gate);
    launch_([&](Backend& b) {
      return b.swiglu(context_, {.gate = gate,
                                 .up = s_.embedding.all + at,
                                 .width = config_.n_layer_embd,
                                 .activation = config_.activation,
                                 .up_stride = stride});
    });
    matmul(layer.embedding_projection, gate, s_.normed);
  }

 private:
  void matmul(const WeightMatrix& weight, const float* x, float* out) {
    launch_([&](Backend& b) {
      return b.matmul(context_, {LaunchSite::LayerEmbedding, weight, x, out});
    });
  }

  const ModelConfig& config_;
  const StepBuffers& s_;
  const LaunchContext& context_;
  Launch launch_;
};

}  // namespace leasehold
