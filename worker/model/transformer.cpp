#include "worker/model/transformer.hpp"

#include <algorithm>
#include <iterator>

#include "common/expects.hpp"
#include "worker/model/feed_forward.hpp"
#include "worker/model/latent_attention.hpp"
#include "worker/model/layer_embedding.hpp"
#include "worker/model/recurrent_layer.hpp"
#include "worker/model/row_range.hpp"

namespace leasehold {

/// One forward pass. Runs the launches in order and stops when no sequence is live.
class Transformer::Pass {
 public:
  Pass(Transformer& model, const Weights& weights, const ForwardInput& input,
       const AdapterProducts& adapters)
      : model_(model),
        weights_(weights),
        input_(input),
        adapters_(adapters),
        context_{.gates = input.gates, .rows = input.rows},
        live_(input.gates->all()) {
    std::ranges::merge(input.logit_rows, input.hidden_rows, std::back_inserter(read_rows_));
  }

  LaunchStatus run() {
    embed();
    const auto n_rows = static_cast<std::uint32_t>(input_.rows.size());
    const auto n_layers = static_cast<std::uint32_t>(weights_.layers().size());
    const bool takes_ranges = model_.backend_->accepts_row_ranges();
    const std::uint32_t of_all_rows = takes_ranges ? last_mixing_layer() : n_layers;
    for (std::uint32_t i = 0; i < of_all_rows && live_ != 0; ++i) run_layer(i);
    if (takes_ranges) finish_rows_read(of_all_rows);
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

  auto layer_embedding() {
    return LayerEmbedding(model_.config_, s(), context_, [this](auto&& one) { launch(one); });
  }

  /// The last layer that stores keys and values or a state. Those behind it need no other rows.
  std::uint32_t last_mixing_layer() const {
    const auto mixes = [](const LayerConfig& layer) {
      return layer.stores_kv() || has_state(layer.mixer);
    };
    std::uint32_t last = model_.config_.n_layers - 1;
    while (last > 0 && !mixes(model_.config_.layers[last])) --last;
    return last;
  }

  /// Once the last keys, values or states are complete, only rows with logits and rows whose hidden
  /// states are read are needed. Finishes that layer for them, and runs the layers behind it.
  void finish_rows_read(std::uint32_t last_mixing) {
    mix_rows(use_layer(last_mixing));
    for (std::span<const std::uint32_t> left = read_rows_; !left.empty() && live_ != 0;) {
      use_rows(take_range(left, model_.most_between_));
      finish_layer(use_layer(last_mixing));
      for (std::uint32_t i = last_mixing + 1; i < weights_.layers().size(); ++i) run_layer(i);
    }
  }

  const LayerWeights& use_layer(std::uint32_t index) {
    context_.layer = static_cast<std::uint16_t>(index);
    return weights_.layers()[index];
  }

  /// Changes the rows of x from the output of the previous layer to that of this one.
  void run_layer(std::uint32_t index) {
    const LayerWeights& layer = use_layer(index);
    prepares_with_attention_ = !model_.config_.is_parallel;
    mix_rows(layer);
    finish_layer(layer);
    prepares_with_attention_ = false;
  }

  void finish_layer(const LayerWeights& layer) {
    // In a parallel layer the feed-forward reads the residual that attention has read.
    if (model_.config_.is_parallel) ffn_block(layer);
    if (shape().mixer == Mixer::Attention) attention_block(layer);
    if (has_state(shape().mixer))
      launch([&](Backend& b) { return recurrent(layer).add_output(b, context_, first_row_, x()); });
    const bool has_ffn = layer.ffn_down.data || layer.expert_down.data;
    if (has_ffn && !model_.config_.is_parallel) ffn_block(layer);
    if (!layer.embedding_gate.data) return;
    layer_embedding().project(layer, x(), first_row_);
    add_normed(LaunchSite::LayerEmbedding, layer.embedding_norm, layer.output_scale);
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
    const LayerEmbeddingWeights& of_layers = weights_.layer_embeddings();
    if (of_layers.table.data) layer_embedding().compute(of_layers, input_.tokens.data());
  }

  /// The norm of the residual that precedes matmuls.
  RmsNormArgs norm_of(LaunchSite site, Leased<const float> weight) {
    return {.site = site,
            .x = x(),
            .weight = weight,
            .out = s().normed,
            .width = model_.config_.n_embd,
            .epsilon = model_.config_.rms_epsilon,
            .is_centered = model_.config_.centers_norms};
  }

  /// The first matmuls of the projection have these targets of adapters.
  void project(const ProjectionArgs& args, std::span<const AdapterTarget> targets) {
    launch([&](Backend& b) { return adapters_.project(b, context_, args, targets); });
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

  auto latent(const LayerWeights& layer) {
    return LatentAttention(model_.config_, layer, s(), context_,
                           [this](auto&& one) { launch(one); });
  }

  /// Computes queries of the rows, and keys and values if the layer stores them, which it appends.
  void append_block(const LayerWeights& layer) {
    if (model_.config_.latent.rank > 0)
      latent(layer).queries_and_keys(norm_of(LaunchSite::AttentionNorm, layer.attention_norm));
    else
      project_heads(layer);
    if (prepares_with_attention_) return;
    launch([&](Backend& b) { return b.prepare_heads(context_, heads_of(layer)); });
  }

  void project_heads(const LayerWeights& layer) {
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
        product(LaunchSite::QueryProjection, layer.query, q(), layer.query_bias),
        product(LaunchSite::KeyProjection, layer.key, s().k, layer.key_bias),
        product(LaunchSite::ValueProjection, layer.value, s().v, layer.value_bias),
        product(LaunchSite::QueryProjection, layer.attention_gate, attention_gates(), {})};
    const std::size_t with_keys = layer.attention_gate.data ? 4 : 3;
    constexpr AdapterTarget kTargets[] = {AdapterTarget::Query, AdapterTarget::Key,
                                          AdapterTarget::Value};
    const bool stores_kv = shape().stores_kv();
    project({.norm = has_norm ? &norm : nullptr,
             .matmuls = std::span(matmuls).first(stores_kv ? with_keys : 1)},
            std::span(kTargets).first(stores_kv ? 3 : 1));
    if (layer.norms_all_heads) {
      norm_all_heads(LaunchSite::QueryNorm, q(), layer.query_norm, model_.config_.n_heads);
      norm_all_heads(LaunchSite::KeyNorm, s().k, layer.key_norm, shape().n_kv_heads);
    }
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
    const bool is_latent = model_.config_.latent.rank > 0;
    if (is_latent) latent(layer).head_values();
    const bool has_norm = bool{layer.attention_output_norm};
    const bool has_gate = bool{layer.attention_gate.data};
    const SwiGluArgs gate{.gate = attention_gates(),
                          .up = s().attention,
                          .width = heads_width(),
                          .activation = Activation::Sigmoid};
    const MatmulArgs output{.site = LaunchSite::AttentionOutput,
                            .weight = layer.attention_output,
                            .x = has_gate    ? gate.gate
                                 : is_latent ? s().latent.values
                                             : s().attention,
                            .out = has_norm ? s().normed : x(),
                            .accumulate = !has_norm,
                            .bias = layer.attention_output_bias};
    constexpr AdapterTarget kTarget[] = {AdapterTarget::Output};
    project({.swiglu = has_gate ? &gate : nullptr, .matmuls = {&output, 1}}, kTarget);
    if (has_norm) add_normed(LaunchSite::AttentionNorm, layer.attention_output_norm);
  }

  /// Adds the norm of s().normed to the residual, which `out_scale` then multiplies.
  void add_normed(LaunchSite site, Leased<const float> weight, Leased<const float> out_scale = {}) {
    RmsNormArgs norm = norm_of(site, weight);
    norm.x = s().normed;
    norm.out = x();
    norm.accumulate = true;
    norm.out_scale = out_scale;
    launch([&](Backend& b) { return b.rms_norm(context_, norm); });
  }

  HeadsArgs heads_of(const LayerWeights& layer) {
    const bool has_window_angles =
        model_.window_angles_ && model_.config_.windows.limits(context_.layer);
    const RopeConfig& rope = has_window_angles ? *model_.config_.window_rope : model_.config_.rope;
    const AngleTable& angles = has_window_angles ? *model_.window_angles_ : model_.angles_;
    const auto head_norm = [&](Leased<const float> weight) {
      return layer.norms_all_heads ? Leased<const float>{} : weight;
    };
    return {.layout = kv_layer(),
            .q = q(),
            .k = shape().stores_kv() ? s().k : nullptr,
            .v = shape().stores_kv() ? s().v : nullptr,
            .n_heads = model_.config_.n_heads,
            .query_norm = head_norm(layer.query_norm),
            .key_norm = head_norm(layer.key_norm),
            .norms_values = model_.config_.norms_values,
            .epsilon = model_.config_.head_epsilon,
            .rope_dim = is_rotated(model_.config_, context_.layer) ? rope.dim : 0,
            .style = rope.style,
            .cos_sin = angles.cos_sin.data() + first_row_ * rope.dim,
            .query_scales = query_scales(),
            .uses_window_angles = has_window_angles,
            .block_tables = block_tables()};
  }

  void attend(const LayerWeights& layer) {
    const ModelConfig& config = model_.config_;
    const bool is_multiplied_next = config.latent.rank == 0 && !layer.attention_gate.data;
    const AttentionArgs args{.layout = kv_layer(),
                             .q = q(),
                             .out = s().attention,
                             .n_heads = config.n_heads,
                             .scale = config.scales.attention,
                             .block_tables = block_tables(),
                             .window = config.windows.of(context_.layer),
                             .softcap = config.softcaps.attention,
                             .sinks = layer.sinks,
                             .next = is_multiplied_next ? &layer.attention_output : nullptr};
    launch([&](Backend& b) {
      return prepares_with_attention_ ? b.prepare_and_attend(context_, heads_of(layer), args)
                                      : b.attention(context_, args);
    });
  }

  void ffn_block(const LayerWeights& layer) {
    FeedForward(model_.config_, layer, s(), adapters_, context_, x(), [this](auto&& one) {
      launch(one);
    }).run();
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
    launch([&](Backend& b) {
      return b.project(context_,
                       {.norm = &norm, .matmuls = head, .softcap = model_.config_.softcaps.logits});
    });
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
  /// The gates of the heads of the rows that the operators of context_ change.
  float* attention_gates() { return s().mixer.gate + first_row_ * heads_width(); }
  const LayerConfig& shape() const { return model_.config_.layers[context_.layer]; }
  /// The keys and values that the layer reads.
  const KvLayer& kv_layer() const {
    return model_.kv_layout_.layer(kv_layer_of(model_.config_, context_.layer));
  }
  /// The tables of the group of the layer whose keys and values it reads; empty without blocks.
  std::span<const BlockTableView> block_tables() const {
    const std::size_t n_sequences = input_.gates->sequence_count();
    if (input_.block_tables.empty()) return {};
    return input_.block_tables.subspan(kv_layer().group * n_sequences, n_sequences);
  }
  /// The queries of the first row.
  float* q() { return s().q + first_row_ * heads_width(); }
  /// The temperature of the first row; null if the model has none.
  const float* query_scales() const {
    const float* all = model_.query_scales_.data();
    return all != nullptr ? all + first_row_ : nullptr;
  }
  /// The first row of the residual that the operators of context_ change.
  float* x() { return s().x + first_row_ * model_.config_.n_embd; }

  Transformer& model_;
  const Weights& weights_;
  const ForwardInput& input_;
  const AdapterProducts& adapters_;
  LaunchContext context_;
  std::vector<std::uint32_t> read_rows_;  // ascending
  std::size_t first_row_ = 0;             // index of context_.rows in input_.rows
  bool prepares_with_attention_ = false;  // the rows of attention are all rows of the layer
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
  return backend_->prepare_steps(gates,
                                 [&] { Pass(*this, weights, input, {{}, 0, nullptr}).run(); });
}

LaunchStatus Transformer::forward(const Weights& weights, const ForwardInput& input) {
  expects(input.rows.size() <= limits_.max_rows && input.tokens.size() == input.rows.size() &&
              input.logit_rows.size() <= limits_.max_logit_rows,
          "a step fits the limits of its scratch memory");
  expects(input.block_tables.size() ==
              std::size_t{kv_layout_.n_groups()} * input.gates->sequence_count(),
          "every sequence has a block table for each group of layers");
  expects(state_layout_.blocks() == 0 || input.state_tables.size() == input.gates->sequence_count(),
          "every sequence has a place for its state");
  expects(input.adapters.empty() || (limits_.max_adapter_rank > 0 &&
                                     input.adapters.size() == input.gates->sequence_count()),
          "every sequence has an adapter or none, if the model runs with adapters");
  const AdapterProducts adapters(input.adapters, limits_.max_adapter_rank, scratch_.low_rank);
  const auto grow = [](std::uint32_t& used, std::size_t rows) {
    used = std::max(used, static_cast<std::uint32_t>(rows));
  };
  grow(used_.max_rows, input.rows.size());
  grow(used_.max_logit_rows, input.logit_rows.size());
  if (!input.adapters.empty()) used_.max_adapter_rank = limits_.max_adapter_rank;
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
                        .state_tables = input.state_tables,
                        .adapters = adapters.table()});
  const SequenceMask launched = Pass(*this, weights, input, adapters).run().live;
  return {launched & backend_->finish_step(*input.gates).live};
}

}  // namespace leasehold
