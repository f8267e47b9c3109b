#include "worker/model/transformer.hpp"

#include <algorithm>
#include <iterator>

#include "common/expects.hpp"
#include "worker/model/recurrent_layer.hpp"
#include "worker/model/row_range.hpp"

namespace leasehold {

std::span<const float> Transformer::AngleTable::fill(std::span<const RowRef> rows) {
  fill_rope_cos_sin(rows, angles, cos_sin.data());
  return {cos_sin.data(), rows.size() * angles.frequencies.size() * 2};
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
      mix_rows(layer);
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

  /// In the last layer, once keys and values or the state are complete, only rows with logits and
  /// rows whose hidden states are read are needed.
  void finish_rows_read(const LayerWeights& layer) {
    for (std::span<const std::uint32_t> left = read_rows_; !left.empty() && live_ != 0;)
      finish_layer(layer, take_range(left, model_.most_between_));
  }

  /// Changes rows [begin, end) of x from the output of the previous layer to that of this one.
  void finish_layer(const LayerWeights& layer, RowRange range) {
    use_rows(range);
    if (shape().mixer == Mixer::Attention) attention_block(layer);
    if (has_state(shape().mixer))
      launch([&](Backend& b) { return recurrent(layer).add_output(b, context_, first_row_, x()); });
    if (layer.ffn_down.data || layer.expert_down.data) ffn_block(layer);
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

  /// The norm of the residual that precedes matmuls.
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

  /// The part of a layer that needs all rows: what it stores for later positions.
  void mix_rows(const LayerWeights& layer) {
    if (shape().mixer == Mixer::Attention) append_block(layer);
    if (!has_state(shape().mixer)) return;
    const RmsNormArgs norm = norm_of(LaunchSite::AttentionNorm, layer.attention_norm);
    launch([&](Backend& b) { return recurrent(layer).advance(b, context_, norm); });
  }

  RecurrentLayer recurrent(const LayerWeights& layer) {
    return RecurrentLayer(model_.config_, shape().mixer, layer.recurrent, s().mixer,
                          model_.state_layout_.pieces(context_.layer), input_.state_tables);
  }

  /// Computes queries, keys and values of all rows, and appends keys and values.
  void append_block(const LayerWeights& layer) {
    const bool has_norm = bool{layer.attention_norm};
    const RmsNormArgs norm = norm_of(LaunchSite::AttentionNorm, layer.attention_norm);
    const auto product = [&](LaunchSite site, const WeightMatrix& weight, float* out,
                             Leased<const float> bias) {
      return MatmulArgs{.site = site,
                        .weight = weight,
                        .x = has_norm ? s().normed : x(),
                        .out = out,
                        .bias = bias};
    };
    const MatmulArgs matmuls[] = {
        product(LaunchSite::QueryProjection, layer.query, s().q, layer.query_bias),
        product(LaunchSite::KeyProjection, layer.key, s().k, layer.key_bias),
        product(LaunchSite::ValueProjection, layer.value, s().v, layer.value_bias),
        product(LaunchSite::QueryProjection, layer.attention_gate, s().mixer.gate, {})};
    project({.norm = has_norm ? &norm : nullptr,
             .matmuls = std::span(matmuls).first(layer.attention_gate.data ? 4 : 3)});
    if (layer.norms_all_heads) {
      norm_all_heads(LaunchSite::QueryNorm, s().q, layer.query_norm, model_.config_.n_heads);
      norm_all_heads(LaunchSite::KeyNorm, s().k, layer.key_norm, shape().n_kv_heads);
    }
    prepare_heads(layer);
  }

  void norm_all_heads(LaunchSite site, float* heads, Leased<const float> weight,
                      std::uint32_t n_heads) {
    launch([&](Backend& b) {
      return b.rms_norm(context_, {.site = site,
                                   .x = heads,
                                   .weight = weight,
                                   .out = heads,
                                   .width = n_heads * shape().head_dim,
                                   .epsilon = model_.config_.head_epsilon});
    });
  }

  void attention_block(const LayerWeights& layer) {
    attend(layer);
    const bool has_norm = bool{layer.attention_output_norm};
    const bool has_gate = bool{layer.attention_gate.data};
    const SwiGluArgs gate{.gate = s().mixer.gate + first_row_ * heads_width(),
                          .up = s().attention,
                          .width = heads_width(),
                          .activation = Activation::Sigmoid};
    const MatmulArgs output{.site = LaunchSite::AttentionOutput,
                            .weight = layer.attention_output,
                            .x = has_gate ? gate.gate : s().attention,
                            .out = has_norm ? s().normed : x(),
                            .accumulate = !has_norm,
                            .bias = layer.attention_output_bias};
    project({.swiglu = has_gate ? &gate : nullptr, .matmuls = {&output, 1}});
    if (has_norm) add_normed(LaunchSite::AttentionNorm, layer.attention_output_norm);
  }

  /// Adds the norm of s().normed to the residual.
  void add_normed(LaunchSite site, Leased<const float> weight) {
    RmsNormArgs norm = norm_of(site, weight);
    norm.x = s().normed;
    norm.out = x();
    norm.accumulate = true;
    launch([&](Backend& b) { return b.rms_norm(context_, norm); });
  }

  void prepare_heads(const LayerWeights& layer) {
    const bool has_window_angles =
        model_.window_angles_ && model_.config_.windows.limits(context_.layer);
    const RopeConfig& rope = has_window_angles ? *model_.config_.window_rope : model_.config_.rope;
    const AngleTable& angles = has_window_angles ? *model_.window_angles_ : model_.angles_;
    const bool rotates = rope.rotates(context_.layer);
    const auto head_norm = [&](Leased<const float> weight) {
      return layer.norms_all_heads ? Leased<const float>{} : weight;
    };
    launch([&](Backend& b) {
      return b.prepare_heads(context_, {.layout = model_.kv_layout_.layer(context_.layer),
                                        .q = s().q,
                                        .k = s().k,
                                        .v = s().v,
                                        .n_heads = model_.config_.n_heads,
                                        .query_norm = head_norm(layer.query_norm),
                                        .key_norm = head_norm(layer.key_norm),
                                        .epsilon = model_.config_.head_epsilon,
                                        .rope_dim = rotates ? rope.dim : 0,
                                        .style = rope.style,
                                        .cos_sin = angles.cos_sin.data(),
                                        .query_scales = model_.query_scales_.data(),
                                        .uses_window_angles = has_window_angles,
                                        .block_tables = input_.block_tables});
    });
  }

  void attend(const LayerWeights& layer) {
    launch([&](Backend& b) {
      const ModelConfig& config = model_.config_;
      return b.attention(context_, {.layout = model_.kv_layout_.layer(context_.layer),
                                    .q = s().q + first_row_ * heads_width(),
                                    .out = s().attention,
                                    .n_heads = config.n_heads,
                                    .scale = config.scales.attention,
                                    .block_tables = input_.block_tables,
                                    .window = config.windows.of(context_.layer),
                                    .softcap = config.softcaps.attention,
                                    .sinks = layer.sinks});
    });
  }

  void ffn_block(const LayerWeights& layer) {
    const bool has_norm = bool{layer.ffn_norm};
    const RmsNormArgs norm = norm_of(LaunchSite::FfnNorm, layer.ffn_norm);
    if (!model_.config_.experts.in_layer(context_.layer)) {
      const bool has_output_norm = bool{layer.ffn_output_norm};
      feed_forward(layer, {.norm = has_norm ? &norm : nullptr,
                           .x = has_norm ? s().normed : x(),
                           .out = has_output_norm ? s().normed : x(),
                           .accumulate = !has_output_norm});
      if (has_output_norm) add_normed(LaunchSite::FfnNorm, layer.ffn_output_norm);
      return;
    }
    launch([&](Backend& b) { return b.rms_norm(context_, norm); });
    routed_experts(layer);
    if (model_.config_.experts.n_shared_ff > 0) shared_expert(layer);
  }

  /// The rows that a feed-forward reads and writes. `norm` computes x; it is null if x is complete.
  struct FeedForwardRows {
    const RmsNormArgs* norm;
    const float* x;
    float* out;
    bool accumulate;
  };
  void feed_forward(const LayerWeights& layer, const FeedForwardRows& rows) {
    const bool has_gate = bool{layer.ffn_gate.data};
    launch([&](Backend& b) {
      return b.feed_forward(
          context_,
          {.norm = rows.norm,
           .gate = {LaunchSite::FfnGate, has_gate ? layer.ffn_gate : layer.ffn_up, rows.x,
                    s().gate},
           .up = {LaunchSite::FfnUp, has_gate ? layer.ffn_up : WeightMatrix{}, rows.x, s().up},
           .down = {LaunchSite::FfnDown, layer.ffn_down, s().gate, rows.out, rows.accumulate},
           .activation = model_.config_.activation});
    });
  }

  void routed_experts(const LayerWeights& layer) {
    const ExpertConfig& experts = model_.config_.experts;
    matmul({.site = LaunchSite::ExpertRouter,
            .weight = layer.expert_router,
            .x = s().normed,
            .out = s().scores,
            .bias = layer.expert_router_bias});
    launch([&](Backend& b) {
      return b.expert_routing(context_,
                              {.scores = s().scores,
                               .n_experts = experts.n_experts,
                               .n_used = experts.n_used,
                               .normalize_expert_weights = experts.normalize_expert_weights,
                               .chosen = s().chosen,
                               .weights = s().expert_weights,
                               .gating = experts.gating,
                               .selection_bias = layer.expert_selection_bias,
                               .scale = experts.scale});
    });
    const bool is_latent = experts.n_latent > 0;
    if (is_latent) matmul({LaunchSite::ExpertUp, layer.latent_down, s().normed, s().latent});
    const bool has_gate = bool{layer.expert_gate.data};
    ExpertMatmulArgs args{.site = LaunchSite::ExpertUp,
                          .weight = layer.expert_up,
                          .n_experts = experts.n_experts,
                          .chosen = s().chosen,
                          .n_items = n_items(),
                          .x = is_latent ? s().latent : s().normed,
                          .items_per_x = experts.n_used,
                          .out = has_gate ? s().expert_up : s().expert_gate,
                          .bias = layer.expert_up_bias};
    const float* up = args.out;
    expert_matmul(args);
    if (has_gate) {
      args.site = LaunchSite::ExpertGate;
      args.weight = layer.expert_gate;
      args.out = s().expert_gate;
      args.bias = layer.expert_gate_bias;
      expert_matmul(args);
    }
    launch([&](Backend& b) {
      return b.swiglu(context_, {s().expert_gate, up, experts.n_used * experts.n_ff,
                                 model_.config_.activation});
    });
    expert_matmul({.site = LaunchSite::ExpertDown,
                   .weight = layer.expert_down,
                   .n_experts = experts.n_experts,
                   .chosen = s().chosen,
                   .n_items = n_items(),
                   .x = s().expert_gate,
                   .items_per_x = 1,
                   .out = s().expert_out,
                   .bias = layer.expert_down_bias});
    if (!is_latent) return add_to_residual(s().expert_weights, experts.n_used, false);
    launch([&](Backend& b) {
      return b.weighted_sum(context_, {.x = s().expert_out,
                                       .weights = s().expert_weights,
                                       .out = s().latent,
                                       .n_terms = experts.n_used,
                                       .width = experts.n_latent,
                                       .accumulate = false});
    });
    matmul({LaunchSite::ExpertDown, layer.latent_up, s().latent, x(), true});
  }

  void shared_expert(const LayerWeights& layer) {
    if (!layer.shared_gate.data)
      return feed_forward(layer,
                          {.norm = nullptr, .x = s().normed, .out = x(), .accumulate = true});
    matmul({LaunchSite::ExpertRouter, layer.shared_gate, s().normed, s().shared_gate});
    feed_forward(layer,
                 {.norm = nullptr, .x = s().normed, .out = s().expert_out, .accumulate = false});
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
    project({.norm = &norm, .matmuls = head, .softcap = model_.config_.softcaps.logits});
  }

  /// Stores the normed states of all rows; only those in `hidden_rows` are read. Follows the output
  /// block, which overwrites `normed`.
  void hidden_block() {
    if (input_.hidden_rows.empty()) return;
    const RmsNormArgs norm = norm_of(LaunchSite::OutputNorm, weights_.output_norm());
    launch([&](Backend& b) { return b.rms_norm(context_, norm); });
  }

  StepBuffers& s() { return model_.scratch_; }
  std::uint32_t heads_width() const { return model_.config_.n_heads * shape().head_dim; }
  const LayerConfig& shape() const { return model_.config_.layers[context_.layer]; }
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
  expects(state_layout_.blocks() == 0 || input.state_tables.size() == input.gates->sequence_count(),
          "every sequence has a place for its state");
  const auto grow = [](std::uint32_t& used, std::size_t rows) {
    used = std::max(used, static_cast<std::uint32_t>(rows));
  };
  grow(used_.max_rows, input.rows.size());
  grow(used_.max_logit_rows, input.logit_rows.size());
  const std::size_t n_scales = query_scales_.size() > 0 ? input.rows.size() : 0;
  if (n_scales > 0)
    fill_query_scales(input.rows, config_.rope.query_temperature, query_scales_.data());
  backend_->begin_step({.gates = input.gates,
                        .rows = input.rows,
                        .tokens = input.tokens,
                        .block_tables = input.block_tables,
                        .logit_rows = input.logit_rows,
                        .cos_sin = angles_.fill(input.rows),
                        .query_scales = {query_scales_.data(), n_scales},
                        .window_cos_sin = window_angles_ ? window_angles_->fill(input.rows)
                                                         : std::span<const float>(),
                        .state_tables = input.state_tables});
  const SequenceMask launched = Pass(*this, weights, input).run().live;
  return {launched & backend_->finish_step(*input.gates).live};
}

}  // namespace leasehold
