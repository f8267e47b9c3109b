#include "tools/make_model/tensor_plan.hpp"

#include <fmt/format.h>

#include <span>
#include <utility>

#include "kernels/model/architecture_tensors.hpp"

namespace leasehold::make_model {
namespace {

TensorType mixed_type(std::uint64_t columns, bool is_fine) {
  if (columns % block_shape(TensorType::Q4_K).elements == 0)
    return is_fine ? TensorType::Q6_K : TensorType::Q4_K;
  return is_fine ? TensorType::Q8_0 : TensorType::Q5_0;
}

/// True for the first and last eighth of the layers, and for every third layer between them.
bool is_fine_layer(std::uint32_t layer, std::uint32_t n_layers) {
  const std::uint32_t eighth = n_layers / 8;
  return layer < eighth || layer >= 7 * n_layers / 8 || (layer - eighth) % 3 == 2;
}

/// Collects tensors and assigns their offsets.
class Planner {
 public:
  Planner(TensorType matrix_type, bool is_mix) : matrix_type_(matrix_type), is_mix_(is_mix) {}

  /// `count` matrices of the same size, stacked.
  void matrix(std::string name, std::uint64_t rows, std::uint64_t columns, std::uint64_t count = 1,
              bool is_fine = false) {
    add({.name = std::move(name),
         .rows = count * rows,
         .columns = columns,
         .type = is_mix_ ? mixed_type(columns, is_fine) : matrix_type_,
         .matrices = count});
  }
  /// A matrix with the finer type of a mix, if `is_fine`.
  void fine_matrix(std::string name, std::uint64_t rows, std::uint64_t columns, bool is_fine) {
    matrix(std::move(name), rows, columns, 1, is_fine);
  }
  void vector(std::string name, std::uint64_t columns, Fill fill, std::uint64_t count = 1) {
    add({.name = std::move(name), .rows = count, .columns = columns, .fill = fill});
  }
  void gain(std::string name, std::uint64_t columns) {
    vector(std::move(name), columns, Fill::Gain);
  }
  std::vector<PlannedTensor> take() { return std::move(tensors_); }

 private:
  void add(PlannedTensor tensor) {
    tensor.number = tensors_.size();
    tensor.offset = end_;
    end_ = align_up(end_ + tensor.size_bytes());
    tensors_.push_back(std::move(tensor));
  }

  TensorType matrix_type_;
  bool is_mix_;
  std::uint64_t end_ = 0;
  std::vector<PlannedTensor> tensors_;
};

Fill fill_of(std::string_view vector) {
  if (vector.ends_with(".bias")) return Fill::Bias;
  if (vector.ends_with("ssm_a")) return Fill::Decay;
  const bool is_gain =
      vector.contains("norm") || vector.ends_with("scale") || vector.ends_with("scale.weight");
  return is_gain ? Fill::Gain : Fill::Gate;
}

bool is_vector(const TensorSpec& spec) {
  return spec.rows == TensorDim::One;
}

/// Plans the tensors of a layer from the rows that a worker loads.
class LayerPlanner {
 public:
  LayerPlanner(Planner& planner, const ModelRequest& request)
      : planner_(planner), request_(request), config_(request.dimensions()) {}

  void plan(std::uint32_t layer) {
    layer_ = layer;
    prefix_ = fmt::format("blk.{}.", layer);
    is_fine_ = is_fine_layer(layer, config_.n_layers);
    const auto mixer = mixer_tensors(request_.row(), config_.layers[layer].mixer);
    // Seeds count tensors, and files that exist have biases and norms of heads last.
    for (const TensorSpec& spec : mixer)
      if (&spec == mixer.data() || !is_vector(spec)) add(spec, mixer);
    for (const TensorSpec& spec : mixer)
      if (&spec != mixer.data() && is_vector(spec)) add(spec, mixer);
    const Architecture& row = request_.row();
    if (config_.layers[layer].n_ff > 0)
      for (const TensorSpec& spec : row.feed_forward) add(spec, row.feed_forward);
    if (config_.experts.in_layer(layer))
      for (const TensorSpec& spec : row.experts) add(spec, row.experts);
  }

 private:
  std::uint32_t dimension_of(TensorDim dim) const { return dimension(dim, config_, layer_); }

  void add(const TensorSpec& spec, std::span<const TensorSpec> list) {
    const std::uint32_t columns = dimension_of(spec.columns);
    if (columns == 0 || dimension_of(spec.rows) == 0) return;
    if (spec.presence == Presence::Optional && !request_.has_optional) return;
    const bool is_f32 = is_vector(spec) || spec.is_f32;
    const bool is_renamed = is_f32 && !spec.fused.empty();
    const std::string name = prefix_ + std::string(is_renamed ? spec.fused : spec.name);
    const std::uint32_t n_matrices = matrix_count(spec, config_);
    if (is_f32)
      return planner_.vector(name, columns, fill_of(name), dimension_of(spec.rows) * n_matrices);
    const bool is_fine =
        is_fine_ && (spec.name.starts_with("attn_v.") || spec.name.starts_with("ffn_down"));
    // A worker also reads fused experts.
    const bool is_later_file =
        spec.fused == kFusedKeysAndValues && !request_.latent_shape.has_fused_heads;
    if (spec.fused.empty() || spec.presence == Presence::PerExpert || is_later_file)
      return planner_.matrix(name, dimension_of(spec.rows), columns, n_matrices, is_fine);
    add_fused(spec, list);
  }

  /// Adds the fused tensor in place of its first part.
  void add_fused(const TensorSpec& spec, std::span<const TensorSpec> list) {
    std::uint32_t rows = 0;
    for (const TensorSpec& other : list) {
      if (other.fused != spec.fused) continue;
      if (rows == 0 && other.name != spec.name) return;
      rows += dimension_of(other.fused_rows()) * matrix_count(other, config_);
    }
    planner_.matrix(prefix_ + std::string(spec.fused), rows, dimension_of(spec.fused_columns()));
  }

  Planner& planner_;
  const ModelRequest& request_;
  ModelConfig config_;
  std::uint32_t layer_ = 0;
  std::string prefix_;
  bool is_fine_ = false;
};

/// The name with another part, for example "attn_k." instead of "attn_q."; empty without the part.
std::string renamed(const std::string& name, std::string_view part, std::string_view other) {
  const std::size_t at = name.find(part);
  return at == std::string::npos ? "" : std::string(name).replace(at, part.size(), other);
}

/// Whether these are the queries, keys and values of a layer, and can be joined.
bool are_joinable(std::span<const PlannedTensor> three) {
  const PlannedTensor& first = three[0];
  const auto is_part = [&](const PlannedTensor& tensor, std::string_view part) {
    return tensor.name == renamed(first.name, "attn_q.", part) && tensor.type == first.type;
  };
  const auto fills_its_place = [](const PlannedTensor& tensor) {
    return tensor.size_bytes() % kAlignment == 0;
  };
  return is_part(three[1], "attn_k.") && is_part(three[2], "attn_v.") && fills_its_place(first) &&
         fills_its_place(three[1]);
}

}  // namespace

std::vector<PlannedTensor> with_joined_heads(const std::vector<PlannedTensor>& plan) {
  std::vector<PlannedTensor> all;
  for (std::span<const PlannedTensor> left = plan; !left.empty();) {
    PlannedTensor tensor = left[0];
    const bool is_joined = left.size() >= 3 && are_joinable(left.first<3>());
    if (is_joined) {
      const bool is_bias = tensor.name.ends_with(".bias");
      std::uint64_t& length = is_bias ? tensor.columns : tensor.rows;
      for (const PlannedTensor& other : left.subspan(1, 2))
        length += is_bias ? other.columns : other.rows;
      tensor.name = renamed(tensor.name, "attn_q.", "attn_qkv.");
    }
    all.push_back(std::move(tensor));
    left = left.subspan(is_joined ? 3 : 1);
  }
  return all;
}

std::vector<PlannedTensor> plan_tensors(const ModelRequest& request) {
  const ModelShape& shape = request.shape;
  Planner planner(request.type, request.is_mix);
  planner.fine_matrix("token_embd.weight", shape.vocab, shape.embd, shape.tied);
  if (request.layer_shape.layer_embd > 0) {
    const std::uint64_t of_all_layers =
        std::uint64_t{shape.layers} * request.layer_shape.layer_embd;
    planner.fine_matrix("per_layer_token_embd.weight", shape.vocab, of_all_layers, false);
    planner.fine_matrix("per_layer_model_proj.weight", of_all_layers, shape.embd, false);
    planner.gain("per_layer_proj_norm.weight", request.layer_shape.layer_embd);
  }
  LayerPlanner layers(planner, request);
  for (std::uint32_t i = 0; i < shape.layers; ++i) layers.plan(i);
  if (request.has_divisors())
    planner.vector("rope_freqs.weight", request.rope_dim() / 2, Fill::Divisor);
  planner.gain(std::string(request.row().output_norm), shape.embd);
  if (!shape.tied) planner.fine_matrix("output.weight", shape.vocab, shape.embd, true);
  return planner.take();
}

std::vector<std::vector<PlannedTensor>> cut_plan(std::vector<PlannedTensor> plan,
                                                 std::uint32_t n_parts) {
  std::vector<std::vector<PlannedTensor>> parts(n_parts);
  const std::uint64_t total = data_size_bytes(plan);
  for (PlannedTensor& tensor : plan) {
    std::vector<PlannedTensor>& part = parts[tensor.offset * n_parts / total];
    tensor.offset = data_size_bytes(part);
    part.push_back(std::move(tensor));
  }
  return parts;
}

std::uint64_t data_size_bytes(const std::vector<PlannedTensor>& plan) {
  return plan.empty() ? 0 : align_up(plan.back().offset + plan.back().size_bytes());
}

}  // namespace leasehold::make_model
