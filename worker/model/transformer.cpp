#include "worker/model/transformer.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/expects.hpp"
#include "kernels/numerics/rope.hpp"

namespace leasehold {

Transformer::Transformer(const ModelConfig& config, KvType kv_type, Limits limits, Backend& backend)
    : config_(config),
      kv_layout_{.n_layers = config.n_layers,
                 .n_kv_heads = config.n_kv_heads,
                 .head_dim = config.head_dim,
                 .type = kv_type},
      limits_(limits),
      backend_(&backend),
      rope_frequencies_(rope_frequencies(config.rope_dim, config.rope_base)) {
  const std::size_t rows = limits.max_rows;
  const std::size_t heads_width = std::size_t{config.n_heads} * config.head_dim;
  const std::size_t kv_width = std::size_t{config.n_kv_heads} * config.head_dim;
  scratch_.x.resize(rows * config.n_embd);
  scratch_.normed.resize(rows * config.n_embd);
  scratch_.q.resize(rows * heads_width);
  scratch_.k.resize(rows * kv_width);
  scratch_.v.resize(rows * kv_width);
  scratch_.attention.resize(rows * heads_width);
  scratch_.gate.resize(rows * config.n_ff);
  scratch_.up.resize(rows * config.n_ff);
  scratch_.cos_sin.resize(rows * config.rope_dim);
  scratch_.logits.resize(std::size_t{limits.max_logit_rows} * config.n_vocab);
}

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

  void matmul(const MatmulArgs& args) {
    launch([&](Backend& b) { return b.matmul(context_, args); });
  }

  void rope(LaunchSite site, float* x, std::uint32_t n_heads) {
    launch([&](Backend& b) {
      return b.rope(context_, {.site = site,
                               .x = x,
                               .n_heads = n_heads,
                               .head_dim = model_.config_.head_dim,
                               .rope_dim = model_.config_.rope_dim,
                               .style = model_.config_.rope_style,
                               .cos_sin = s().cos_sin.data()});
    });
  }

  void attention_block(const LayerWeights& layer) {
    rms_norm(LaunchSite::AttentionNorm, layer.attention_norm);
    matmul({LaunchSite::QueryProjection, layer.query, s().normed.data(), s().q.data()});
    matmul({LaunchSite::KeyProjection, layer.key, s().normed.data(), s().k.data()});
    matmul({LaunchSite::ValueProjection, layer.value, s().normed.data(), s().v.data()});
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
            .accumulate = true});
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
    matmul({LaunchSite::FfnGate, layer.ffn_gate, s().normed.data(), s().gate.data()});
    matmul({LaunchSite::FfnUp, layer.ffn_up, s().normed.data(), s().up.data()});
    launch([&](Backend& b) {
      return b.swiglu(context_, {s().gate.data(), s().up.data(), model_.config_.n_ff});
    });
    matmul({.site = LaunchSite::FfnDown,
            .weight = layer.ffn_down,
            .x = s().gate.data(),
            .out = s().x.data(),
            .accumulate = true});
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
  fill_rope_cos_sin(input.rows, rope_frequencies_, scratch_.cos_sin.data());
  return Pass(*this, weights, input).run();
}

std::span<const float> Transformer::logits(std::uint32_t i) const {
  return {scratch_.logits.data() + std::size_t{i} * config_.n_vocab, config_.n_vocab};
}

void Transformer::scrub() {
  const std::size_t rows = std::exchange(used_rows_, 0);
  const std::size_t logit_rows = std::exchange(used_logit_rows_, 0);
  for (std::vector<float>* buffer :
       {&scratch_.x, &scratch_.normed, &scratch_.q, &scratch_.k, &scratch_.v, &scratch_.attention,
        &scratch_.gate, &scratch_.up}) {
    const std::size_t width = buffer->size() / limits_.max_rows;
    std::fill_n(buffer->begin(), rows * width, 0.0f);
  }
  std::fill_n(scratch_.logits.begin(), logit_rows * config_.n_vocab, 0.0f);
  backend_->scrub_scratch();
}

}  // namespace leasehold
