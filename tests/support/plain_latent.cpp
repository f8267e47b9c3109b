#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "tests/support/plain_model.hpp"

namespace leasehold::testing {

/// Latent attention as it is trained: each head has keys and values of its own, computed from the
/// latent vectors of all positions.
PlainModel::Vector PlainModel::attend_latent(std::uint32_t layer, const Vector& x) {
  const auto rank = static_cast<std::ptrdiff_t>(config_.latent.rank);
  const bool is_direct = find(layer, "attn_q.weight") != nullptr;
  Vector q =
      is_direct
          ? project(layer, "attn_q", x)
          : project(layer, "attn_q_b",
                    normed(project(layer, "attn_q_a", x), *find(layer, "attn_q_a_norm.weight")));
  Vector key = project(layer, "attn_kv_a_mqa", x);
  const Vector latent =
      normed(Vector(key.begin(), key.begin() + rank), *find(layer, "attn_kv_a_norm.weight"));
  std::ranges::copy(latent, key.begin());
  const std::size_t position = keys_[layer].size();
  rotate_head(config_.rope, key.begin() + rank, position);
  keys_[layer].push_back(key);
  Vector out;
  const auto width = static_cast<std::ptrdiff_t>(q.size() / config_.n_heads);
  for (std::size_t head = 0; head < config_.n_heads; ++head) {
    const auto begin = q.begin() + static_cast<std::ptrdiff_t>(head) * width;
    rotate_head(config_.rope, begin + config_.latent.unrotated_dim, position);
    for (auto element = begin; element != begin + width; ++element)
      *element *= temperature(position);
    std::ranges::copy(latent_head(layer, Vector(begin, begin + width), head),
                      std::back_inserter(out));
  }
  return project(layer, "attn_output", out);
}

/// The unrotated key of a head and its value.
std::pair<PlainModel::Vector, PlainModel::Vector> PlainModel::key_and_value(
    std::uint32_t layer, const Vector& latent, std::size_t head) const {
  const LatentConfig& dims = config_.latent;
  if (const Matrix* fused = find(layer, "attn_kv_b.weight")) {
    const std::size_t first = head * (dims.unrotated_dim + dims.value_dim);
    return {times(*fused, latent, first, dims.unrotated_dim),
            times(*fused, latent, first + dims.unrotated_dim, dims.value_dim)};
  }
  const Matrix& of_keys = of_layer(layer, "attn_k_b");  // per head [rank, unrotated_dim]
  Vector key(dims.unrotated_dim);
  for (std::size_t d = 0; d < key.size(); ++d)
    for (std::size_t i = 0; i < dims.rank; ++i)
      key[d] += of_keys.values[(head * dims.rank + i) * of_keys.columns + d] * latent[i];
  return {key, times(of_layer(layer, "attn_v_b"), latent, head * dims.value_dim, dims.value_dim)};
}

/// The output of a head for a rotated query.
PlainModel::Vector PlainModel::latent_head(std::uint32_t layer, const Vector& query,
                                           std::size_t head) const {
  const LatentConfig& dims = config_.latent;
  const double scale = latent_scale_ / std::sqrt(static_cast<double>(query.size()));
  Vector sum(dims.value_dim);
  double total = 0;
  for (const Vector& key : keys_[layer]) {
    const Vector latent(key.begin(), key.begin() + static_cast<std::ptrdiff_t>(dims.rank));
    const auto [own, value] = key_and_value(layer, latent, head);
    double score = std::inner_product(own.begin(), own.end(), query.begin(), 0.0);
    for (std::size_t i = 0; i + dims.rank < key.size(); ++i)
      score += key[dims.rank + i] * query[dims.unrotated_dim + i];
    const double weight = std::exp(score * scale);
    total += weight;
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += weight * value[i];
  }
  for (double& element : sum) element /= total;
  return sum;
}

}  // namespace leasehold::testing
