#include "tests/support/plain_model.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <string_view>

#include "kernels/model/gguf/gguf.hpp"
#include "tests/support/plain_formats.hpp"
#include "tests/support/required.hpp"

namespace leasehold::testing {
namespace {

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

void add_to(std::vector<double>& x, const std::vector<double>& more, double weight = 1) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += weight * more[i];
}

}  // namespace

PlainModel::PlainModel(const std::string& path, std::uint32_t n_context) {
  const GgufFile file = required(GgufFile::open(path));
  config_ = required(read_config(file));
  if (n_context > 0) config_.n_context = n_context;
  constexpr std::string_view kNeighbours[] = {"llama", "mistral3", "smollm3", "granite"};
  pairs_are_neighbours_ =
      std::ranges::find(kNeighbours, config_.architecture) != std::end(kNeighbours);
  const auto scale = [&](const char* what) {
    return required(file.get_or<float>(config_.architecture + what, 1.0f));
  };
  embedding_scale_ = scale(".embedding_scale");
  residual_scale_ = scale(".residual_scale");
  logit_scale_ = scale(".logit_scale");
  for (const GgufTensor& tensor : file.tensors()) {
    tensors_[tensor.name] = {
        .columns = tensor.columns(),
        .values = plain_values(static_cast<std::uint32_t>(tensor.type), file.data(tensor).data(),
                               tensor.rows() * tensor.columns())};
  }
  divide_fused_tensors();
  forget();
}

void PlainModel::divide(const std::string& fused,
                        const std::vector<std::pair<std::string, std::size_t>>& rows) {
  const auto found = tensors_.find(fused);
  if (found == tensors_.end()) return;
  const Matrix whole = std::move(found->second);
  tensors_.erase(found);
  std::size_t n_rows = 0;
  for (const auto& [name, count] : rows) n_rows += count;
  const std::size_t n_matrices = whole.values.size() / whole.columns / n_rows;
  auto next = whole.values.begin();
  for (std::size_t i = 0; i < n_matrices; ++i)
    for (const auto& [name, count] : rows) {
      Matrix& part = tensors_[name];
      part.columns = whole.columns;
      const auto end = next + static_cast<std::ptrdiff_t>(count * whole.columns);
      part.values.insert(part.values.end(), next, end);
      next = end;
    }
}

void PlainModel::divide_fused_tensors() {
  const std::size_t keys = std::size_t{config_.n_kv_heads} * config_.head_dim;
  for (std::uint32_t layer = 0; layer < config_.n_layers; ++layer) {
    const auto named = [&](const char* what) {
      return "blk." + std::to_string(layer) + "." + what;
    };
    divide(named("attn_qkv.weight"),
           {{named("attn_q.weight"), std::size_t{config_.n_heads} * config_.head_dim},
            {named("attn_k.weight"), keys},
            {named("attn_v.weight"), keys}});
    if (!tensors_.contains(named("ffn_gate.weight")))
      divide(named("ffn_up.weight"),
             {{named("ffn_gate.weight"), config_.n_ff}, {named("ffn_up.weight"), config_.n_ff}});
    divide(named("ffn_gate_up_exps.weight"), {{named("ffn_gate_exps.weight"), config_.experts.n_ff},
                                              {named("ffn_up_exps.weight"), config_.experts.n_ff}});
  }
}

void PlainModel::forget() {
  keys_.assign(config_.n_layers, {});
  values_.assign(config_.n_layers, {});
}

const PlainModel::Matrix& PlainModel::of_layer(std::uint32_t layer, const char* name) const {
  return matrix("blk." + std::to_string(layer) + "." + name);
}

const PlainModel::Matrix* PlainModel::find(std::uint32_t layer, const char* name) const {
  const auto found = tensors_.find("blk." + std::to_string(layer) + "." + name);
  return found == tensors_.end() ? nullptr : &found->second;
}

PlainModel::Vector PlainModel::times(const Matrix& matrix, const Vector& x) {
  return times(matrix, x, 0, matrix.values.size() / matrix.columns);
}

PlainModel::Vector PlainModel::times(const Matrix& matrix, const Vector& x, std::size_t first_row,
                                     std::size_t n_rows) {
  Vector out;
  auto row = matrix.values.begin() + static_cast<std::ptrdiff_t>(first_row * matrix.columns);
  for (std::size_t i = 0; i < n_rows; ++i, row += static_cast<std::ptrdiff_t>(matrix.columns))
    out.push_back(std::inner_product(x.begin(), x.end(), row, 0.0));
  return out;
}

PlainModel::Vector PlainModel::normed(const Vector& x, const Matrix& weight) const {
  const double squares = std::inner_product(x.begin(), x.end(), x.begin(), 0.0);
  const double root = std::sqrt(squares / static_cast<double>(x.size()) + config_.head_epsilon);
  Vector out(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) out[i] = x[i] / root * weight.values[i];
  return out;
}

/// Normalises each head separately, if the model has a norm weight.
void PlainModel::norm_heads(Vector& heads, const Matrix* weight) const {
  if (weight == nullptr) return;
  const auto dim = static_cast<std::ptrdiff_t>(config_.head_dim);
  for (auto head = heads.begin(); head != heads.end(); head += dim)
    std::ranges::copy(normed(Vector(head, head + dim), *weight), head);
}

double PlainModel::angle(std::size_t pair, std::size_t position) const {
  const RopeConfig& rope = config_.rope;
  const double dim = rope.dim;
  double frequency = std::pow(double{rope.base}, -2.0 * static_cast<double>(pair) / dim);
  const bool is_short = config_.n_context <= rope.short_context;
  const std::vector<float>& divisors = is_short ? rope.short_factors : rope.freq_factors;
  if (!divisors.empty()) frequency /= divisors[pair];
  if (rope.scaling == RopeScaling::Linear) frequency /= rope.factor;
  if (rope.scaling == RopeScaling::Yarn) {
    const auto turning = [&](double turns) {
      return dim * std::log(rope.yarn.original_context / (turns * 2 * std::numbers::pi)) /
             (2 * std::log(double{rope.base}));
    };
    const double low = std::max(0.0, std::floor(turning(rope.yarn.beta_fast)));
    const double high = std::min(dim - 1, std::ceil(turning(rope.yarn.beta_slow)));
    const double ramp = (static_cast<double>(pair) - low) / std::max(0.001, high - low);
    const double kept = (1 - std::min(1.0, std::max(0.0, ramp))) * rope.yarn.extrapolation;
    frequency = frequency * kept + frequency / rope.factor * (1 - kept);
  }
  return static_cast<double>(position) * frequency;
}

/// The pair is two neighbours in a llama file, whose rows are permuted for that; otherwise an
/// element of the first half and one of the second half.
void PlainModel::rotate(std::uint32_t layer, Vector& heads, std::size_t position) const {
  if (config_.architecture == "smollm3" && layer % 4 == 3) return;
  const std::size_t pairs = config_.rope.dim / 2;
  double length = config_.rope.magnitude;
  if (config_.rope.scaling == RopeScaling::Yarn) {
    const double growth = 0.1 * std::log(config_.rope.factor);
    length *= (1 + growth) / (1 + config_.rope.yarn.log_multiplier * growth);
  }
  for (std::size_t head = 0; head < heads.size(); head += config_.head_dim)
    for (std::size_t i = 0; i < pairs; ++i) {
      const double turn = angle(i, position);
      double& first = heads[head + (pairs_are_neighbours_ ? 2 * i : i)];
      double& second = heads[head + (pairs_are_neighbours_ ? 2 * i + 1 : i + pairs)];
      const double before = first;
      first = length * (before * std::cos(turn) - second * std::sin(turn));
      second = length * (before * std::sin(turn) + second * std::cos(turn));
    }
}

PlainModel::Vector PlainModel::project(std::uint32_t layer, const std::string& what,
                                       const Vector& x) const {
  Vector out = times(of_layer(layer, what.c_str()), x);
  const Matrix* bias = find(layer, (what + ".bias").c_str());
  if (bias != nullptr) add_to(out, bias->values);
  return out;
}

PlainModel::Vector PlainModel::attend(std::uint32_t layer, const Vector& x) {
  std::vector<Vector>& keys = keys_[layer];
  std::vector<Vector>& values = values_[layer];
  Vector q = project(layer, "attn_q", x);
  Vector k = project(layer, "attn_k", x);
  norm_heads(q, find(layer, "attn_q_norm.weight"));
  norm_heads(k, find(layer, "attn_k_norm.weight"));
  const std::size_t position = keys.size();
  rotate(layer, q, position);
  rotate(layer, k, position);
  const QueryTemperature& temperature = config_.rope.query_temperature;
  if (temperature.growth > 0)
    for (double& element : q)
      element *= 1 + temperature.growth * std::log(1 + std::floor(position / temperature.step));
  keys.push_back(k);
  values.push_back(project(layer, "attn_v", x));
  const std::size_t dim = config_.head_dim;
  const std::size_t sharing = config_.n_heads / config_.n_kv_heads;
  const double attention_scale = config_.architecture == "granite"
                                     ? config_.scales.attention
                                     : 1 / std::sqrt(static_cast<double>(dim));
  Vector out(q.size());
  for (std::size_t head = 0; head < config_.n_heads; ++head) {
    const std::size_t from = head / sharing * dim;
    Vector weights;
    for (const Vector& key : keys) {
      const auto begin = q.begin() + static_cast<std::ptrdiff_t>(head * dim);
      const auto with = key.begin() + static_cast<std::ptrdiff_t>(from);
      weights.push_back(
          std::inner_product(begin, begin + static_cast<std::ptrdiff_t>(dim), with, 0.0) *
          attention_scale);
    }
    const double highest = *std::ranges::max_element(weights);
    double sum = 0;
    for (double& weight : weights) sum += weight = std::exp(weight - highest);
    for (std::size_t p = 0; p < weights.size(); ++p)
      for (std::size_t d = 0; d < dim; ++d)
        out[head * dim + d] += weights[p] / sum * values[p][from + d];
  }
  return project(layer, "attn_output", out);
}

/// `suffix`: "" for the layer's own network, "_shexp" for the shared expert.
PlainModel::Vector PlainModel::feed_forward(std::uint32_t layer, const Vector& x,
                                            const std::string& suffix) const {
  Vector gate = times(of_layer(layer, ("ffn_gate" + suffix).c_str()), x);
  const Vector up = times(of_layer(layer, ("ffn_up" + suffix).c_str()), x);
  for (std::size_t i = 0; i < gate.size(); ++i) gate[i] *= sigmoid(gate[i]) * up[i];
  return times(of_layer(layer, ("ffn_down" + suffix).c_str()), gate);
}

PlainModel::Vector PlainModel::expert(std::uint32_t layer, const Vector& x,
                                      std::size_t number) const {
  const std::size_t width = config_.experts.n_ff;
  Vector gate = times(of_layer(layer, "ffn_gate_exps"), x, number * width, width);
  const Vector up = times(of_layer(layer, "ffn_up_exps"), x, number * width, width);
  for (std::size_t i = 0; i < gate.size(); ++i) gate[i] *= sigmoid(gate[i]) * up[i];
  return times(of_layer(layer, "ffn_down_exps"), gate, number * x.size(), x.size());
}

/// Weights are from the softmax over all experts. For Mixtral and Qwen3 the weights of the chosen
/// experts are scaled to sum to one.
PlainModel::Vector PlainModel::experts(std::uint32_t layer, const Vector& x) const {
  Vector shares = times(of_layer(layer, "ffn_gate_inp"), x);
  for (double& share : shares) share = std::exp(share);
  const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
  std::vector<std::size_t> order(shares.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t e) { return shares[e]; });
  order.resize(config_.experts.n_used);
  double chosen = 0;
  for (const std::size_t e : order) chosen += shares[e];
  const double sum = config_.architecture == "qwen2moe" ? all : chosen;
  Vector out(x.size());
  for (const std::size_t e : order) add_to(out, expert(layer, x, e), shares[e] / sum);
  if (config_.architecture == "qwen2moe") {
    const double gate = times(of_layer(layer, "ffn_gate_inp_shexp"), x).front();
    add_to(out, feed_forward(layer, x, "_shexp"), sigmoid(gate));
  }
  return out;
}

PlainModel::Vector PlainModel::next(std::int32_t token) {
  const Matrix& table = matrix("token_embd");
  const auto row = table.values.begin() + static_cast<std::ptrdiff_t>(table.columns) * token;
  Vector x(row, row + static_cast<std::ptrdiff_t>(table.columns));
  for (double& element : x) element *= embedding_scale_;
  const bool has_experts = config_.experts.n_experts > 0;
  for (std::uint32_t layer = 0; layer < config_.n_layers; ++layer) {
    add_to(x, attend(layer, normed(x, of_layer(layer, "attn_norm"))), residual_scale_);
    const Vector norm = normed(x, of_layer(layer, "ffn_norm"));
    add_to(x, has_experts ? experts(layer, norm) : feed_forward(layer, norm, ""), residual_scale_);
  }
  hidden_ = normed(x, matrix("output_norm"));
  Vector logits = times(config_.tied_embeddings ? table : matrix("output"), hidden_);
  for (double& logit : logits) logit /= logit_scale_;
  return logits;
}

}  // namespace leasehold::testing
