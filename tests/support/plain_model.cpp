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

bool is_qwen35(std::string_view architecture) {
  return architecture.starts_with("qwen35") || architecture == "qwen3next";
}

}  // namespace

PlainModel::PlainModel(const std::string& path, std::uint32_t n_context) {
  const GgufFile file = required(GgufFile::open(path));
  config_ = required(read_config(file));
  if (n_context > 0) config_.n_context = n_context;
  constexpr std::string_view kNeighbours[] = {"llama",        "mistral3",      "smollm3",
                                              "granite",      "granitehybrid", "ernie4_5",
                                              "ernie4_5-moe", "glm4"};
  pairs_are_neighbours_ =
      std::ranges::find(kNeighbours, config_.architecture) != std::end(kNeighbours);
  const auto scale = [&](const char* what) {
    return required(file.get_or<float>(config_.architecture + what, 1.0f));
  };
  embedding_scale_ = scale(".embedding_scale");
  residual_scale_ = scale(".residual_scale");
  logit_scale_ = scale(".logit_scale");
  expert_scale_ = scale(".expert_weights_scale");
  is_gemma_ = config_.architecture.starts_with("gemma");
  is_gpt_oss_ = config_.architecture == "gpt-oss";
  if (is_gpt_oss_ || config_.architecture == "glm4moe" || is_qwen35(config_.architecture))
    ffn_norm_ = "post_attention_norm.weight";
  rotates_ = required(file.get_or<bool>(config_.architecture + ".rope.scaling.finetuned", true));
  is_nemotron_ = config_.architecture.starts_with("nemotron_h");
  if (is_nemotron_) ffn_norm_ = "attn_norm.weight";
  if (is_gemma_) embedding_scale_ = std::sqrt(static_cast<double>(config_.n_embd));
  if (is_gpt_oss_ || config_.architecture == "gemma2") full_every_ = 2;
  if (config_.architecture == "gemma3") full_every_ = 6;
  if (config_.architecture == "olmo2") full_every_ = 4;
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
    if (config_.layers[layer].mixer == Mixer::Attention)
      divide(named("attn_qkv.weight"),
             {{named("attn_q.weight"), std::size_t{config_.n_heads} * config_.head_dim},
              {named("attn_k.weight"), keys},
              {named("attn_v.weight"), keys}});
    if (!is_nemotron_ && !tensors_.contains(named("ffn_gate.weight")))
      divide(named("ffn_up.weight"),
             {{named("ffn_gate.weight"), config_.n_ff}, {named("ffn_up.weight"), config_.n_ff}});
    divide(named("ffn_gate_up_exps.weight"), {{named("ffn_gate_exps.weight"), config_.experts.n_ff},
                                              {named("ffn_up_exps.weight"), config_.experts.n_ff}});
  }
}

void PlainModel::forget() {
  keys_.assign(config_.n_layers, {});
  values_.assign(config_.n_layers, {});
  inputs_.assign(config_.n_layers, {});
  const RecurrentConfig& shape = config_.recurrent;
  states_.assign(config_.n_layers,
                 std::vector<Vector>(shape.n_heads, Vector(shape.key_dim * shape.head_dim)));
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

/// Normalises each head separately, or all together for a longer weight, if the model has one.
void PlainModel::norm_heads(Vector& heads, const Matrix* weight) const {
  if (weight == nullptr) return;
  const auto dim = static_cast<std::ptrdiff_t>(weight->values.size());
  for (auto head = heads.begin(); head != heads.end(); head += dim)
    std::ranges::copy(normed(Vector(head, head + dim), *weight), head);
}

namespace {

double angle(const RopeConfig& rope, std::uint32_t n_context, std::size_t pair,
             std::size_t position) {
  const double dim = rope.dim;
  double frequency = std::pow(double{rope.base}, -2.0 * static_cast<double>(pair) / dim);
  const bool is_short = n_context <= rope.short_context;
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

}  // namespace

/// The pair is two neighbours in a llama file, whose rows are permuted for that; otherwise an
/// element of the first half and one of the second half.
void PlainModel::rotate(std::uint32_t layer, Vector& heads, std::size_t position) const {
  if (config_.architecture == "smollm3" && layer % 4 == 3) return;
  if (is_nemotron_ || !rotates_) return;
  const bool has_own_angles = config_.window_rope && (layer + 1) % full_every_ != 0;
  const RopeConfig& rope = has_own_angles ? *config_.window_rope : config_.rope;
  const std::size_t pairs = rope.dim / 2;
  double length = rope.magnitude;
  if (rope.scaling == RopeScaling::Yarn) {
    const double growth = 0.1 * std::log(rope.factor);
    length *= (1 + growth) / (1 + rope.yarn.log_multiplier * growth);
  }
  for (std::size_t head = 0; head < heads.size(); head += config_.head_dim)
    for (std::size_t i = 0; i < pairs; ++i) {
      const double turn = angle(rope, config_.n_context, i, position);
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

/// The attention of a head to each position: exponentials of the scores, divided by their sum. A
/// sink takes part in the sum.
PlainModel::Vector PlainModel::weights_of(std::uint32_t layer, const Vector& q,
                                          std::size_t head) const {
  const auto dim = static_cast<std::ptrdiff_t>(config_.head_dim);
  const std::size_t sharing = config_.n_heads / config_.n_kv_heads;
  const bool has_own_scale = config_.architecture.starts_with("granite");
  const double scale = has_own_scale ? config_.scales.attention
                                     : 1 / std::sqrt(static_cast<double>(config_.head_dim));
  const std::vector<Vector>& keys = keys_[layer];
  const bool has_window = full_every_ > 1 && (layer + 1) % full_every_ != 0;
  const std::size_t window = has_window ? config_.windows.width : keys.size();
  const double cap = config_.softcaps.attention;
  Vector weights(keys.size());
  const Matrix* sinks = find(layer, "attn_sinks.weight");
  double sum = sinks != nullptr ? std::exp(sinks->values[head]) : 0;
  for (std::size_t p = keys.size() - std::min(window, keys.size()); p < keys.size(); ++p) {
    const auto begin = q.begin() + static_cast<std::ptrdiff_t>(head) * dim;
    const auto key = keys[p].begin() + static_cast<std::ptrdiff_t>(head / sharing) * dim;
    double score = std::inner_product(begin, begin + dim, key, 0.0) * scale;
    if (cap > 0) score = cap * std::tanh(score / cap);
    sum += weights[p] = std::exp(score);
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

PlainModel::Vector PlainModel::mix(std::uint32_t layer, const Vector& x) {
  switch (config_.layers[layer].mixer) {
    case Mixer::Attention:
      return attend(layer, x);
    case Mixer::DeltaNet:
      return delta_net(layer, x);
    case Mixer::Mamba2:
      return mamba(layer, x);
    case Mixer::ShortConvolution:
      return short_convolution(layer, x);
    case Mixer::None:
      break;
  }
  return Vector(x.size());
}

PlainModel::Vector PlainModel::attend(std::uint32_t layer, const Vector& x) {
  std::vector<Vector>& keys = keys_[layer];
  std::vector<Vector>& values = values_[layer];
  Vector q = project(layer, "attn_q", x);
  // Qwen3.5: each head has a query, then a gate.
  Vector gates;
  if (q.size() == 2 * std::size_t{config_.n_heads} * config_.head_dim) {
    Vector queries;
    for (std::size_t i = 0; i < q.size(); ++i)
      (i / config_.head_dim % 2 == 0 ? queries : gates).push_back(q[i]);
    q = queries;
  }
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
  Vector out(q.size());
  for (std::size_t head = 0; head < config_.n_heads; ++head) {
    const std::size_t from = head / sharing * dim;
    const Vector weights = weights_of(layer, q, head);
    for (std::size_t p = 0; p < weights.size(); ++p)
      for (std::size_t d = 0; d < dim; ++d) out[head * dim + d] += weights[p] * values[p][from + d];
  }
  for (std::size_t i = 0; i < gates.size(); ++i) out[i] *= sigmoid(gates[i]);
  return project(layer, "attn_output", out);
}

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

/// Probabilities are the softmax over all experts, or sigmoids. A bias changes the choice only.
PlainModel::Vector PlainModel::experts(std::uint32_t layer, const Vector& x) const {
  Vector shares = project(layer, "ffn_gate_inp", x);
  constexpr std::string_view kSigmoid[] = {"glm4moe", "minimax-m2", "lfm2moe", "nemotron_h_moe"};
  const bool is_sigmoid = std::ranges::find(kSigmoid, config_.architecture) != std::end(kSigmoid);
  for (double& share : shares) share = is_sigmoid ? sigmoid(share) : std::exp(share);
  if (!is_sigmoid) {
    const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
    for (double& share : shares) share /= all;
  }
  Vector keys = shares;
  if (const Matrix* bias = find(layer, "exp_probs_b.bias")) add_to(keys, bias->values);
  std::vector<std::size_t> order(shares.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t e) { return keys[e]; });
  order.resize(config_.experts.n_used);
  double sum = 0;
  for (const std::size_t e : order) sum += shares[e];
  if (config_.architecture == "qwen2moe") sum = 1;
  const bool is_latent = find(layer, "ffn_latent_down.weight") != nullptr;
  const Vector input = is_latent ? times(of_layer(layer, "ffn_latent_down"), x) : x;
  Vector out(input.size());
  for (const std::size_t e : order)
    add_to(out, expert(layer, input, e), shares[e] / sum * expert_scale_);
  if (is_latent) out = times(of_layer(layer, "ffn_latent_up"), out);
  if (find(layer, "ffn_up_shexp.weight") == nullptr) return out;
  const bool is_gated = find(layer, "ffn_gate_inp_shexp.weight") != nullptr;
  const double gate =
      is_gated ? sigmoid(times(of_layer(layer, "ffn_gate_inp_shexp"), x).front()) : 1;
  add_to(out, feed_forward(layer, x, "_shexp"), gate);
  return out;
}

/// Adds a branch to the residual, normed if the model has a weight for that.
void PlainModel::add_branch(std::uint32_t layer, Vector& x, Vector branch, const char* norm) const {
  const Matrix* weight = norm == ffn_norm_ ? nullptr : find(layer, norm);
  add_to(x, weight != nullptr ? normed(branch, *weight) : branch, residual_scale_);
}

PlainModel::Vector PlainModel::next(std::int32_t token) {
  const Matrix& table = matrix("token_embd");
  const auto row = table.values.begin() + static_cast<std::ptrdiff_t>(table.columns) * token;
  Vector x(row, row + static_cast<std::ptrdiff_t>(table.columns));
  for (double& element : x) element *= embedding_scale_;
  for (std::uint32_t layer = 0; layer < config_.n_layers; ++layer) {
    const Matrix* attention_norm = find(layer, "attn_norm.weight");
    if (config_.layers[layer].mixer != Mixer::None)
      add_branch(layer, x, mix(layer, attention_norm != nullptr ? normed(x, *attention_norm) : x),
                 "post_attention_norm.weight");
    const Matrix* ffn_norm = find(layer, ffn_norm_.c_str());
    const Vector norm = ffn_norm != nullptr ? normed(x, *ffn_norm) : x;
    const bool is_dense = find(layer, "ffn_gate_inp.weight") == nullptr;
    if (is_dense && find(layer, "ffn_down.weight") == nullptr) continue;
    add_branch(layer, x, is_dense ? feed_forward(layer, norm, "") : experts(layer, norm),
               "post_ffw_norm.weight");
  }
  const bool has_output_norm = tensors_.contains("output_norm.weight");
  hidden_ = normed(x, matrix(has_output_norm ? "output_norm" : "token_embd_norm"));
  Vector logits = times(config_.tied_embeddings ? table : matrix("output"), hidden_);
  const double cap = config_.softcaps.logits;
  for (double& logit : logits) {
    logit /= logit_scale_;
    if (cap > 0) logit = cap * std::tanh(logit / cap);
  }
  return logits;
}

}  // namespace leasehold::testing
