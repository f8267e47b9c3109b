#include "worker/model/transformer.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/expects.hpp"
#include "kernels/model/kv_type.hpp"
#include "worker/model/row_range.hpp"

namespace leasehold {

BackendLimits Transformer::backend_limits(const ModelConfig& config, const Limits& limits) {
  const std::uint32_t heads_width = config.n_heads * config.head_dim;
  return {.max_rows = limits.max_rows,
          .max_context = config.n_context,
          .n_heads = config.n_heads,
          .head_dim = config.head_dim,
          .max_width = std::max({config.n_embd, config.n_ff, config.experts.n_ff, heads_width}),
          .n_experts = config.experts.n_experts,
          .n_experts_used = config.experts.n_used,
          .max_logit_rows = limits.max_logit_rows,
          .rope_dim = config.rope.dim,
          .n_vocab = config.n_vocab,
          .scratch_bytes = step_buffer_bytes(config, limits)};
}

Transformer::Transformer(const ModelConfig& config, KvType kv_type, Limits limits, Backend& backend)
    : config_(config),
      kv_layout_(leasehold::kv_layout(config, kv_type)),
      limits_(limits),
      backend_(&backend),
      angles_(rope_angles(config.rope, config.n_context)),
      most_between_(max_row_gap(backend.units_run().size())),
      cos_sin_(std::size_t{limits.max_rows} * config.rope.dim),
      query_scales_(config.rope.query_temperature.growth > 0 ? limits.max_rows : 0) {
  scratch_.each(config, limits, [&]<class T>(T*& pointer, std::size_t elements) {
    pointer = reinterpret_cast<T*>(backend.allocate_scratch(elements * sizeof(T)));
  });
}

/// One forward pass. Runs the launches in order and stops when no sequence is live.
class Transformer::Pass {
 public:
  Pass(Transformer& model, const Weights& weights, const ForwardInput& input)
      : model_(model),
        weights_(weights),
        input_(input),
        context_{.gates = input.gates, .rows = input.rows},
        live_(input.gates->all()) {
    std::ranges::merge(input.logit_rows, input.hidden_rows, std::back_inserter(read_rows_));
  }

  LaunchStatus run() {
    embed();
    const auto n_rows = static_cast<std::uint32_t>(input_.rows.size());
    const std::size_t n_layers = weights_.layers().size();
    for (std::uint32_t i = 0; i < n_layers && live_ != 0; ++i) {
      context_.layer = static_cast<std::uint16_t>(i);
      const LayerWeights& layer = weights_.layers()[i];
      append_block(layer);
      if (i + 1 == n_layers && model_.backend_->accepts_row_ranges())
        finish_rows_read(layer);
      else
        finish_layer(layer, {0, n_rows});
    }
    use_rows({0, n_rows});
    output_block();
    hidden_block();
    return {live_};
  }

 private:
  /// Runs one launch unless no sequence is live.
  template <class Launch>
  void launch(Launch&& one) {
    if (live_ != 0) live_ &= one(*model_.backend_).live;
  }

  /// In the last layer, once keys and values are appended, only rows with logits and rows whose
  /// hidden states are read are needed.
  void finish_rows_read(const LayerWeights& layer) {
    for (std::span<const std::uint32_t> left = read_rows_; !left.empty() && live_ != 0;)
      finish_layer(layer, take_range(left, model_.most_between_));
  }

  /// Changes rows [begin, end) of x from the output of the previous layer to that of this one.
  void finish_layer(const LayerWeights& layer, RowRange range) {
    use_rows(range);
    attention_block(layer);
    ffn_block(layer);
  }

  void use_rows(RowRange range) {
    first_row_ = range.begin;
    context_.rows = input_.rows.subspan(range.begin, range.end - range.begin);
  }

  void embed() {
    launch([&](Backend& b) {
      return b.embedding(context_, {.table = weights_.token_embedding(),
                                    .tokens = input_.tokens.data(),
                                    .out = s().x,
                                    .scale = model_.config_.scales.embedding});
    });
  }

  RmsNormArgs norm_of(LaunchSite site, Leased<const float> weight) {
    return {.site = site,
            .x = x(),
            .weight = weight,
            .out = s().normed,
            .width = model_.config_.n_embd,
            .epsilon = model_.config_.rms_epsilon};
  }

  void project(const ProjectionArgs& args) {
    launch([&](Backend& b) { return b.project(context_, args); });
  }

  void matmul(const MatmulArgs& args) {
    launch([&](Backend& b) { return b.matmul(context_, args); });
  }

  MatmulArgs product_of_normed(LaunchSite site, const WeightMatrix& weight, float* out,
                               Leased<const float> bias = {}) {
    return {.site = site, .weight = weight, .x = s().normed, .out = out, .bias = bias};
  }

  /// Computes queries, keys and values of all rows, and appends keys and values.
  void append_block(const LayerWeights& layer) {
    const RmsNormArgs norm = norm_of(LaunchSite::AttentionNorm, layer.attention_norm);
    const MatmulArgs matmuls[] = {
        product_of_normed(LaunchSite::QueryProjection, layer.query, s().q, layer.query_bias),
        product_of_normed(LaunchSite::KeyProjection, layer.key, s().k, layer.key_bias),
        product_of_normed(LaunchSite::ValueProjection, layer.value, s().v, layer.value_bias)};
    project({.norm = &norm, .matmuls = matmuls});
    prepare_heads(layer);
  }

  void attention_block(const LayerWeights& layer) {
    attend();
    matmul({.site = LaunchSite::AttentionOutput,
            .weight = layer.attention_output,
            .x = s().attention,
            .out = x(),
            .accumulate = true,
            .bias = layer.attention_output_bias});
  }

  void prepare_heads(const LayerWeights& layer) {
    const RopeConfig& rope = model_.config_.rope;
    const bool rotates = rope.rotates(context_.layer);
    launch([&](Backend& b) {
      return b.prepare_heads(context_, {.layout = model_.kv_layout_,
                                        .q = s().q,
                                        .k = s().k,
                                        .v = s().v,
                                        .n_heads = model_.config_.n_heads,
                                        .query_norm = layer.query_norm,
                                        .key_norm = layer.key_norm,
                                        .epsilon = model_.config_.head_epsilon,
                                        .rope_dim = rotates ? rope.dim : 0,
                                        .style = rope.style,
                                        .cos_sin = model_.cos_sin_.data(),
                                        .query_scales = model_.query_scales_.data(),
                                        .block_tables = input_.block_tables});
    });
  }

  void attend() {
    launch([&](Backend& b) {
      const ModelConfig& config = model_.config_;
      const std::size_t q_width = std::size_t{config.n_heads} * config.head_dim;
      return b.attention(context_, {.layout = model_.kv_layout_,
                                    .q = s().q + first_row_ * q_width,
                                    .out = s().attention,
                                    .n_heads = config.n_heads,
                                    .scale = config.scales.attention,
                                    .block_tables = input_.block_tables});
    });
  }

  void ffn_block(const LayerWeights& layer) {
    const RmsNormArgs norm = norm_of(LaunchSite::FfnNorm, layer.ffn_norm);
    if (model_.config_.experts.n_experts == 0) return feed_forward(layer, &norm, x(), true);
    launch([&](Backend& b) { return b.rms_norm(context_, norm); });
    routed_experts(layer);
    if (model_.config_.n_ff > 0) shared_expert(layer);
  }

  /// Computes the feed-forward of the rows and adds it to `out` or stores it there. `norm` is null
  /// if the rows are already normed.
  void feed_forward(const LayerWeights& layer, const RmsNormArgs* norm, float* out,
                    bool accumulate) {
    launch([&](Backend& b) {
      return b.feed_forward(
          context_, {.norm = norm,
                     .gate = product_of_normed(LaunchSite::FfnGate, layer.ffn_gate, s().gate),
                     .up = product_of_normed(LaunchSite::FfnUp, layer.ffn_up, s().up),
                     .down = {.site = LaunchSite::FfnDown,
                              .weight = layer.ffn_down,
                              .x = s().gate,
                              .out = out,
                              .accumulate = accumulate}});
    });
  }

  void routed_experts(const LayerWeights& layer) {
    const ExpertConfig& experts = model_.config_.experts;
    matmul({LaunchSite::ExpertRouter, layer.expert_router, s().normed, s().scores});
    launch([&](Backend& b) {
      return b.expert_routing(context_,
                              {.scores = s().scores,
                               .n_experts = experts.n_experts,
                               .n_used = experts.n_used,
                               .normalize_expert_weights = experts.normalize_expert_weights,
                               .chosen = s().chosen,
                               .weights = s().expert_weights});
    });
    ExpertMatmulArgs args{.site = LaunchSite::ExpertGate,
                          .weight = layer.expert_gate,
                          .n_experts = experts.n_experts,
                          .chosen = s().chosen,
                          .n_items = n_items(),
                          .x = s().normed,
                          .items_per_x = experts.n_used,
                          .out = s().expert_gate};
    expert_matmul(args);
    args.site = LaunchSite::ExpertUp;
    args.weight = layer.expert_up;
    args.out = s().expert_up;
    expert_matmul(args);
    launch([&](Backend& b) {
      return b.swiglu(context_, {s().expert_gate, s().expert_up, experts.n_used * experts.n_ff});
    });
    expert_matmul({.site = LaunchSite::ExpertDown,
                   .weight = layer.expert_down,
                   .n_experts = experts.n_experts,
                   .chosen = s().chosen,
                   .n_items = n_items(),
                   .x = s().expert_gate,
                   .items_per_x = 1,
                   .out = s().expert_out});
    add_to_residual(s().expert_weights, experts.n_used, false);
  }

  void shared_expert(const LayerWeights& layer) {
    matmul({LaunchSite::ExpertRouter, layer.shared_gate, s().normed, s().shared_gate});
    feed_forward(layer, nullptr, s().expert_out, false);
    add_to_residual(s().shared_gate, 1, true);
  }

  std::uint32_t n_items() const {
    return static_cast<std::uint32_t>(context_.rows.size()) * model_.config_.experts.n_used;
  }

  /// Multiplies each row by the matrices of its chosen experts.
  void expert_matmul(const ExpertMatmulArgs& args) {
    launch([&](Backend& b) { return b.expert_matmul(context_, args); });
  }

  void add_to_residual(const float* weights, std::uint32_t n_terms, bool applies_sigmoid) {
    launch([&](Backend& b) {
      return b.weighted_sum(context_, {.x = s().expert_out,
                                       .weights = weights,
                                       .out = x(),
                                       .n_terms = n_terms,
                                       .width = model_.config_.n_embd,
                                       .applies_sigmoid = applies_sigmoid});
    });
  }

  void output_block() {
    if (input_.logit_rows.empty()) return;
    RmsNormArgs norm = norm_of(LaunchSite::OutputNorm, weights_.output_norm());
    norm.scale = model_.config_.scales.logits;  // the output matrix is linear
    const MatmulArgs head[] = {{.site = LaunchSite::LmHead,
                                .weight = weights_.output(),
                                .x = s().normed,
                                .out = s().logits,
                                .select = input_.logit_rows}};
    project({.norm = &norm, .matmuls = head});
  }

  /// Stores the normed states of all rows; only those in `hidden_rows` are read. Follows the output
  /// block, which overwrites `normed`.
  void hidden_block() {
    if (input_.hidden_rows.empty()) return;
    const RmsNormArgs norm = norm_of(LaunchSite::OutputNorm, weights_.output_norm());
    launch([&](Backend& b) { return b.rms_norm(context_, norm); });
  }

  StepBuffers& s() { return model_.scratch_; }
  /// The first row of the residual that the operators of context_ change.
  float* x() { return s().x + first_row_ * model_.config_.n_embd; }

  Transformer& model_;
  const Weights& weights_;
  const ForwardInput& input_;
  LaunchContext context_;
  std::vector<std::uint32_t> read_rows_;  // ascending
  std::size_t first_row_ = 0;             // index of context_.rows in input_.rows
  SequenceMask live_;
};

std::size_t Transformer::prepare_steps(const Weights& weights, const GateSet& gates) {
  const RowRef row{};
  const std::int32_t token = 0;
  const std::uint32_t logit_row = 0;
  const ForwardInput input{.gates = &gates,
                           .rows = {&row, 1},
                           .tokens = {&token, 1},
                           .block_tables = {},
                           .logit_rows = {&logit_row, 1}};
  return backend_->prepare_steps(gates, [&] { Pass(*this, weights, input).run(); });
}

LaunchStatus Transformer::forward(const Weights& weights, const ForwardInput& input) {
  expects(input.rows.size() <= limits_.max_rows && input.tokens.size() == input.rows.size() &&
              input.logit_rows.size() <= limits_.max_logit_rows,
          "a step fits the limits of its scratch memory");
  const auto grow = [](std::uint32_t& used, std::size_t rows) {
    used = std::max(used, static_cast<std::uint32_t>(rows));
  };
  grow(used_.max_rows, input.rows.size());
  grow(used_.max_logit_rows, input.logit_rows.size());
  fill_rope_cos_sin(input.rows, angles_, cos_sin_.data());
  const std::size_t n_scales = query_scales_.size() > 0 ? input.rows.size() : 0;
  if (n_scales > 0)
    fill_query_scales(input.rows, config_.rope.query_temperature, query_scales_.data());
  backend_->begin_step({.gates = input.gates,
                        .rows = input.rows,
                        .tokens = input.tokens,
                        .block_tables = input.block_tables,
                        .logit_rows = input.logit_rows,
                        .cos_sin = {cos_sin_.data(), input.rows.size() * config_.rope.dim},
                        .query_scales = {query_scales_.data(), n_scales}});
  const SequenceMask launched = Pass(*this, weights, input).run().live;
  return {launched & backend_->finish_step(*input.gates).live};
}

std::span<const float> Transformer::logits(std::uint32_t i) const {
  return backend_->fetch(scratch_.logits + std::size_t{i} * config_.n_vocab, config_.n_vocab);
}

std::span<const float> Transformer::hidden(std::uint32_t first_row, std::uint32_t count) const {
  return backend_->fetch(scratch_.normed + std::size_t{first_row} * config_.n_embd,
                         std::size_t{count} * config_.n_embd);
}

void Transformer::scrub() {
  const Limits used = std::exchange(used_, {0, 0});
  scratch_.each(config_, used, [&](auto* pointer, std::size_t elements) {
    backend_->clear_scratch(reinterpret_cast<std::byte*>(pointer), elements * sizeof *pointer);
  });
  backend_->clear_workspace();
}

}  // namespace leasehold
