/// The feed-forwards and experts of PlainModel.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <numeric>
#include <utility>

#include "tests/support/plain_model.hpp"

namespace leasehold::testing {
namespace {

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

}  // namespace

double PlainModel::gated(double gate, double up) const {
  if (is_gemma_) {
    const double inner = std::sqrt(2 / std::numbers::pi) * (gate + 0.044715 * gate * gate * gate);
    return gate / 2 * (1 + std::tanh(inner)) * up;
  }
  if (is_nemotron_) return std::pow(std::max(up, 0.0), 2);
  if (!is_gpt_oss_) return gate * sigmoid(gate) * up;
  const double g = std::min(gate, 7.0);
  return g * sigmoid(1.702 * g) * (std::clamp(up, -7.0, 7.0) + 1);
}

/// `suffix`: "" for the layer's own network, "_shexp" for the shared expert.
PlainModel::Vector PlainModel::feed_forward(std::uint32_t layer, const Vector& x,
                                            const std::string& suffix) const {
  const Vector up = times(of_layer(layer, ("ffn_up" + suffix).c_str()), x);
  Vector gate = is_nemotron_ ? up : times(of_layer(layer, ("ffn_gate" + suffix).c_str()), x);
  for (std::size_t i = 0; i < gate.size(); ++i) gate[i] = gated(gate[i], up[i]);
  return times(of_layer(layer, ("ffn_down" + suffix).c_str()), gate);
}

PlainModel::Vector PlainModel::expert(std::uint32_t layer, const Vector& x,
                                      std::size_t number) const {
  const std::size_t width = config_.experts.n_ff;
  const auto product = [&](const std::string& what, const Vector& of, std::size_t n_rows) {
    Vector out = times(of_layer(layer, what.c_str()), of, number * n_rows, n_rows);
    if (const Matrix* bias = find(layer, (what + ".bias").c_str()))
      for (std::size_t i = 0; i < n_rows; ++i) out[i] += bias->values[number * n_rows + i];
    return out;
  };
  const Vector up = product("ffn_up_exps", x, width);
  Vector gate = is_nemotron_ ? up : product("ffn_gate_exps", x, width);
  for (std::size_t i = 0; i < gate.size(); ++i) gate[i] = gated(gate[i], up[i]);
  return product("ffn_down_exps", gate, x.size());
}

/// The experts that `routed` chooses compute `x`. Probabilities are the softmax over all experts,
/// or sigmoids. A bias changes the choice only.
PlainModel::Vector PlainModel::experts(std::uint32_t layer, const Vector& routed,
                                       const Vector& x) const {
  Vector shares = project(layer, "ffn_gate_inp", routed);
  for (double& share : shares) share = has_sigmoid_experts_ ? sigmoid(share) : std::exp(share);
  if (!has_sigmoid_experts_) {
    const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
    for (double& share : shares) share /= all;
  }
  Vector keys = shares;
  if (const Matrix* bias = find(layer, "exp_probs_b.bias")) add_to(keys, bias->values);
  drop_groups(keys);
  std::vector<std::size_t> order(shares.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t e) { return keys[e]; });
  order.resize(config_.experts.n_used);
  double sum = 0;
  for (const std::size_t e : order) sum += shares[e];
  if (!has_normed_experts_) sum = 1;
  const bool is_latent = find(layer, "ffn_latent_down.weight") != nullptr;
  const Vector input = is_latent ? times(of_layer(layer, "ffn_latent_down"), x) : x;
  Vector out(input.size());
  const Matrix* scales = find(layer, "ffn_down_exps.scale");
  for (const std::size_t e : order)
    add_to(out, expert(layer, input, e),
           shares[e] / sum * expert_scale_ * (scales != nullptr ? scales->values[e] : 1));
  if (is_latent) out = times(of_layer(layer, "ffn_latent_up"), out);
  if (find(layer, "ffn_up_shexp.weight") == nullptr) return out;
  const bool is_gated = find(layer, "ffn_gate_inp_shexp.weight") != nullptr;
  const double gate =
      is_gated ? sigmoid(times(of_layer(layer, "ffn_gate_inp_shexp"), x).front()) : 1;
  add_to(out, feed_forward(layer, x, "_shexp"), gate);
  return out;
}

/// Keeps the groups of experts whose two highest keys have the largest sums.
void PlainModel::drop_groups(Vector& keys) const {
  const std::size_t n_groups = config_.experts.n_groups;
  const std::size_t size = keys.size() / n_groups;
  std::vector<std::pair<double, std::size_t>> groups;
  for (std::size_t group = 0; group < n_groups; ++group) {
    const auto begin = keys.begin() + static_cast<std::ptrdiff_t>(group * size);
    Vector sorted(begin, begin + static_cast<std::ptrdiff_t>(size));
    std::ranges::sort(sorted, std::greater{});
    groups.emplace_back(-(sorted[0] + (size > 1 ? sorted[1] : 0)), group);
  }
  std::ranges::sort(groups);
  for (std::size_t i = config_.experts.n_groups_used; i < n_groups; ++i)
    std::fill_n(keys.begin() + static_cast<std::ptrdiff_t>(groups[i].second * size), size, -1e30);
}

}  // namespace leasehold::testing
