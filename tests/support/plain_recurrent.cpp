/// The layers of PlainModel with recurrent state.
///
/// Source: Yang et al. 2025 (gated delta networks), Dao and Gu 2024 (Mamba-2), Qwen Team 2025
/// (Qwen3-Next, Qwen3.5), Liquid AI 2025 (LFM2), IBM 2025 (Granite 4), NVIDIA 2025 (Nemotron-H).
#include <algorithm>
#include <cmath>
#include <utility>

#include "tests/support/plain_model.hpp"

namespace leasehold::testing {
namespace {

using Vector = PlainModel::Vector;

double softplus(double x) {
  return std::log1p(std::exp(-std::abs(x))) + std::max(x, 0.0);
}
double logistic(double x) {
  return 1 / (1 + std::exp(-x));
}

Vector part(const Vector& of, std::size_t first, std::size_t count) {
  const auto begin = of.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}
void extend(Vector& to, const Vector& more) {
  to.insert(to.end(), more.begin(), more.end());
}

/// Scales a vector to this length.
void set_length(Vector& x, double length, double epsilon) {
  double squares = epsilon;
  for (const double element : x) squares += element * element;
  for (double& element : x) element *= length / std::sqrt(squares);
}

/// state[i, j] ← decay · state[i, j] + key[i] · update[j]
void advance(Vector& state, double decay, const Vector& key, const Vector& update) {
  for (std::size_t i = 0; i < key.size(); ++i)
    for (std::size_t j = 0; j < update.size(); ++j) {
      double& element = state[i * update.size() + j];
      element = decay * element + key[i] * update[j];
    }
}
/// Σ_i state[i, j] · x[i]
Vector read(const Vector& state, const Vector& x) {
  const std::size_t width = state.size() / x.size();
  Vector out(width);
  for (std::size_t i = 0; i < x.size(); ++i)
    for (std::size_t j = 0; j < width; ++j) out[j] += state[i * width + j] * x[i];
  return out;
}

}  // namespace

/// What a delta net computes from its input, with heads in the file's order.
struct PlainModel::RecurrentInput {
  Vector qkv;
  Vector gates;
  Vector betas;
  Vector alphas;
};

/// The weighted sum of the latest inputs of each channel, this one's last.
Vector PlainModel::convolve(std::uint32_t layer, const std::string& name, const Vector& input) {
  std::vector<Vector>& inputs = inputs_[layer];
  inputs.push_back(input);
  const Matrix& weight = of_layer(layer, name.c_str());
  const Matrix* bias = find(layer, (name + ".bias").c_str());
  Vector out(input.size());
  for (std::size_t c = 0; c < out.size(); ++c) {
    if (bias != nullptr) out[c] = bias->values[c];
    for (std::size_t back = 0; back < std::min(weight.columns, inputs.size()); ++back)
      out[c] +=
          weight.values[(c + 1) * weight.columns - 1 - back] * inputs[inputs.size() - 1 - back][c];
  }
  return out;
}

/// The tensors of Qwen3-Next group rows by key head.
PlainModel::RecurrentInput PlainModel::delta_input(std::uint32_t layer, const Vector& x) const {
  if (find(layer, "ssm_ba.weight") == nullptr)
    return {.qkv = times(of_layer(layer, "attn_qkv"), x),
            .gates = times(of_layer(layer, "attn_gate"), x),
            .betas = times(of_layer(layer, "ssm_beta"), x),
            .alphas = times(of_layer(layer, "ssm_alpha"), x)};
  const RecurrentConfig& shape = config_.recurrent;
  const std::size_t keys = shape.key_dim;
  const std::size_t sharing = shape.n_heads / shape.n_groups;
  const std::size_t values = sharing * shape.head_dim;
  RecurrentInput input;
  const Vector ba = times(of_layer(layer, "ssm_ba"), x);
  for (std::size_t g = 0; g < shape.n_groups; ++g) {
    extend(input.betas, part(ba, g * 2 * sharing, sharing));
    extend(input.alphas, part(ba, g * 2 * sharing + sharing, sharing));
  }
  if (find(layer, "ssm_in.weight") == nullptr) {
    input.qkv = times(of_layer(layer, "attn_qkv"), x);
    input.gates = times(of_layer(layer, "attn_gate"), x);
    return input;
  }
  const Vector all = times(of_layer(layer, "ssm_in"), x);
  const std::size_t width = 2 * keys + 2 * values;
  for (const auto& [first, count] :
       {std::pair(std::size_t{0}, keys), std::pair(keys, keys), std::pair(2 * keys, values)})
    for (std::size_t g = 0; g < shape.n_groups; ++g)
      extend(input.qkv, part(all, g * width + first, count));
  for (std::size_t g = 0; g < shape.n_groups; ++g)
    extend(input.gates, part(all, g * width + 2 * keys + values, values));
  return input;
}

Vector PlainModel::delta_net(std::uint32_t layer, const Vector& x) {
  const RecurrentConfig& shape = config_.recurrent;
  const RecurrentInput input = delta_input(layer, x);
  Vector qkv = convolve(layer, "ssm_conv1d", input.qkv);
  for (double& element : qkv) element *= logistic(element);
  const std::size_t keys = std::size_t{shape.n_groups} * shape.key_dim;
  const Vector& rates = find(layer, "ssm_a")->values;
  const Vector& bias = find(layer, "ssm_dt.bias")->values;
  Vector out;
  for (std::size_t h = 0; h < shape.n_heads; ++h) {
    const std::size_t group = config_.architecture == "qwen3next"
                                  ? h / (shape.n_heads / shape.n_groups)
                                  : h % shape.n_groups;
    Vector query = part(qkv, group * shape.key_dim, shape.key_dim);
    Vector key = part(qkv, keys + group * shape.key_dim, shape.key_dim);
    set_length(query, 1 / std::sqrt(static_cast<double>(shape.key_dim)), config_.head_epsilon);
    set_length(key, 1, config_.head_epsilon);
    const double decay = std::exp(rates[h] * softplus(input.alphas[h] + bias[h]));
    Vector update = part(qkv, 2 * keys + h * shape.head_dim, shape.head_dim);
    Vector& state = states_[layer][h];
    const Vector known = read(state, key);
    for (std::size_t j = 0; j < update.size(); ++j)
      update[j] = logistic(input.betas[h]) * (update[j] - decay * known[j]);
    advance(state, decay, key, update);
    Vector head = normed(read(state, query), of_layer(layer, "ssm_norm"));
    for (std::size_t j = 0; j < head.size(); ++j) {
      const double gate = input.gates[h * shape.head_dim + j];
      head[j] *= gate * logistic(gate);
    }
    extend(out, head);
  }
  return times(of_layer(layer, "ssm_out"), out);
}

Vector PlainModel::mamba(std::uint32_t layer, const Vector& x) {
  const RecurrentConfig& shape = config_.recurrent;
  const std::size_t inner = std::size_t{shape.n_heads} * shape.head_dim;
  const std::size_t keys = std::size_t{shape.n_groups} * shape.key_dim;
  const Vector all = times(of_layer(layer, "ssm_in"), x);
  Vector mixed = convolve(layer, "ssm_conv1d", part(all, inner, inner + 2 * keys));
  for (double& element : mixed) element *= logistic(element);
  Vector out;
  for (std::size_t h = 0; h < shape.n_heads; ++h) {
    const std::size_t group = h / (shape.n_heads / shape.n_groups) * shape.key_dim;
    const double step =
        softplus(all[inner + inner + 2 * keys + h] + find(layer, "ssm_dt.bias")->values[h]);
    const Vector value = part(mixed, h * shape.head_dim, shape.head_dim);
    Vector update = value;
    for (double& element : update) element *= step;
    Vector& state = states_[layer][h];
    advance(state, std::exp(step * find(layer, "ssm_a")->values[h]),
            part(mixed, inner + group, shape.key_dim), update);
    Vector head = read(state, part(mixed, inner + keys + group, shape.key_dim));
    for (std::size_t j = 0; j < head.size(); ++j) {
      const double gate = all[h * shape.head_dim + j];
      head[j] = (head[j] + find(layer, "ssm_d")->values[h] * value[j]) * gate * logistic(gate);
    }
    extend(out, head);
  }
  const Matrix& weight = of_layer(layer, "ssm_norm");
  const std::size_t width = inner / shape.n_groups;
  Vector result;
  for (std::size_t g = 0; g < shape.n_groups; ++g)
    extend(result, normed(part(out, g * width, width),
                          {.columns = width, .values = part(weight.values, g * width, width)}));
  return times(of_layer(layer, "ssm_out"), result);
}

Vector PlainModel::short_convolution(std::uint32_t layer, const Vector& x) {
  const Vector all = times(of_layer(layer, "shortconv.in_proj"), x);
  Vector input(x.size());
  for (std::size_t c = 0; c < x.size(); ++c) input[c] = all[c] * all[2 * x.size() + c];
  Vector out = convolve(layer, "shortconv.conv", input);
  for (std::size_t c = 0; c < x.size(); ++c) out[c] *= all[x.size() + c];
  return times(of_layer(layer, "shortconv.out_proj"), out);
}

}  // namespace leasehold::testing
