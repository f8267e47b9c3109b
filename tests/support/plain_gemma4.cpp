#include <cmath>
#include <numbers>

#include "kernels/model/gguf/gguf.hpp"
#include "tests/support/plain_model.hpp"
#include "tests/support/required.hpp"

namespace leasehold::testing {

void PlainModel::read_gemma4(const GgufFile& file) {
  is_gemma4_ = true;
  has_window_ = required(file.get<std::vector<bool>>("gemma4.attention.sliding_window_pattern"));
  const auto number = [&](const char* key) { return required(file.get_or<std::uint32_t>(key, 0)); };
  first_shared_ = config_.n_layers - number("gemma4.attention.shared_kv_layers");
  embedding_width_ = number("gemma4.embedding_length_per_layer_input");
}

/// The layer whose keys and values a layer reads.
std::uint32_t PlainModel::kv_source(std::uint32_t layer) const {
  if (!is_gemma4_ || layer < first_shared_) return layer;
  return first_shared_ - (has_window_[layer] ? 2 : 1);
}

/// Experts that compute beside the feed-forward, whose result is `dense`.
PlainModel::Vector PlainModel::with_experts(std::uint32_t layer, const Vector& x,
                                            const Vector& dense) const {
  Vector routed = normed(x, *find(layer, "ffn_gate_inp.scale"));
  for (double& element : routed) element /= std::sqrt(static_cast<double>(x.size()));
  Vector sum = normed(dense, of_layer(layer, "post_ffw_norm_1"));
  const Vector input = normed(x, of_layer(layer, "pre_ffw_norm_2"));
  add_to(sum, normed(experts(layer, routed, input), of_layer(layer, "post_ffw_norm_2")));
  return sum;
}

/// Adds the layer's embedding of the token and of `first`, the residual before the first layer.
void PlainModel::add_embedding(std::uint32_t layer, Vector& x, const Vector& first,
                               std::int32_t token) const {
  const auto at = static_cast<std::ptrdiff_t>(layer * embedding_width_);
  const auto width = static_cast<std::ptrdiff_t>(embedding_width_);
  Vector scaled = first;
  for (double& element : scaled) element /= std::sqrt(static_cast<double>(first.size()));
  Vector own = normed(
      times(matrix("per_layer_model_proj"), scaled, layer * embedding_width_, embedding_width_),
      matrix("per_layer_proj_norm"));
  const Matrix& table = matrix("per_layer_token_embd");
  const auto row = table.values.begin() + static_cast<std::ptrdiff_t>(table.columns) * token + at;
  add_to(own, Vector(row, row + width), std::sqrt(static_cast<double>(width)));
  Vector gate = times(of_layer(layer, "inp_gate"), x);
  for (std::size_t i = 0; i < gate.size(); ++i)
    gate[i] = gated(gate[i], own[i] / std::numbers::sqrt2);
  add_to(x, normed(times(of_layer(layer, "proj"), gate), of_layer(layer, "post_norm")));
}

}  // namespace leasehold::testing
