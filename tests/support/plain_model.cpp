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

bool is_qwen35(std::string_view architecture) {
  return architecture.starts_with("qwen35") || architecture == "qwen3next";
}

}  // namespace

void PlainModel::add_to(Vector& x, const Vector& more, double weight) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += weight * more[i];
}

PlainModel::PlainModel(const std::string& path, std::uint32_t n_context) {
  const GgufFile file = required(GgufFile::open(path));
  config_ = required(read_config(file));
  if (n_context > 0) config_.n_context = n_context;
  constexpr std::string_view kNeighbours[] = {
      "llama",    "mistral3",     "smollm3", "granite",   "granitehybrid",
      "ernie4_5", "ernie4_5-moe", "glm4",    "deepseek2", "cohere2"};
  pairs_are_neighbours_ =
      std::ranges::find(kNeighbours, config_.architecture) != std::end(kNeighbours);
  const auto scale = [&](const char* what) {
    return required(file.get_or<float>(config_.architecture + what, 1.0f));
  };
  embedding_scale_ = scale(".embedding_scale");
  residual_scale_ = scale(".residual_scale");
  logit_scale_ = scale(".logit_scale");
  expert_scale_ = scale(".expert_weights_scale");
  const auto key = [&](const char* what, auto fallback) {
    return required(file.get_or(config_.architecture + what, fallback));
  };
  constexpr std::string_view kSigmoid[] = {"glm4moe", "minimax-m2", "lfm2moe", "nemotron_h_moe"};
  has_sigmoid_experts_ = std::ranges::find(kSigmoid, config_.architecture) != std::end(kSigmoid) ||
                         key(".expert_gating_func", std::uint32_t{0}) == 2;
  has_normed_experts_ = config_.architecture == "deepseek2" ? key(".expert_weights_norm", false)
                                                            : config_.architecture != "qwen2moe";
  if (const auto factor = key(".rope.scaling.factor", 1.0f); factor > 1) {
    const double multiplier = 10.0 * key(".rope.scaling.yarn_log_multiplier", 0.0f);
    latent_scale_ = std::pow(1 + 0.1 * (multiplier > 0 ? multiplier : 1) * std::log(factor), 2);
  }
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
  is_cohere_ = config_.architecture == "cohere2";
  if (is_cohere_) logit_scale_ = 1 / logit_scale_;
  if (is_cohere_ || config_.architecture == "olmo2") full_every_ = 4;
  for (std::uint32_t layer = 0; layer < config_.n_layers; ++layer)
    has_window_.push_back((layer + 1) % full_every_ != 0);
  if (config_.architecture == "gemma4") read_gemma4(file);
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
  const std::size_t columns = fused.ends_with(".bias") ? 1 : whole.columns;
  const std::size_t n_matrices = whole.values.size() / columns / n_rows;
  auto next = whole.values.begin();
  for (std::size_t i = 0; i < n_matrices; ++i)
    for (const auto& [name, count] : rows) {
      Matrix& part = tensors_[name];
      part.columns = columns;
      const auto end = next + static_cast<std::ptrdiff_t>(count * columns);
      part.values.insert(part.values.end(), next, end);
      next = end;
    }
}

void PlainModel::divide_fused_tensors() {
  for (std::uint32_t layer = 0; layer < config_.n_layers; ++layer) {
    const auto named = [&](const std::string& what) {
      return "blk." + std::to_string(layer) + "." + what;
    };
    const LayerConfig& shape = config_.layers[layer];
    const std::size_t keys = std::size_t{shape.n_kv_heads} * shape.head_dim;
    const std::size_t queries =
        std::size_t{config_.n_heads} * shape.head_dim * (config_.gates_attention ? 2 : 1);
    for (const char* const kind : {"weight", "bias"})
      if (shape.mixer == Mixer::Attention)
        divide(named("attn_qkv.") + kind, {{named("attn_q.") + kind, queries},
                                           {named("attn_k.") + kind, keys},
                                           {named("attn_v.") + kind, keys}});
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
  Vector out = normed(x);
  for (std::size_t i = 0; i < x.size(); ++i) out[i] *= weight.values[i];
  return out;
}

PlainModel::Vector PlainModel::normed(const Vector& row) const {
  Vector x = row;
  const double mean = std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
  if (is_cohere_)
    for (double& element : x) element -= mean;
  const double squares = std::inner_product(x.begin(), x.end(), x.begin(), 0.0);
  const double root = std::sqrt(squares / static_cast<double>(x.size()) + config_.head_epsilon);
  Vector out(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) out[i] = x[i] / root;
  return out;
}

std::size_t PlainModel::head_dim(std::uint32_t layer) const {
  return config_.layers[layer].head_dim;
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

void PlainModel::rotate(std::uint32_t layer, Vector& heads, std::size_t position) const {
  const bool is_fourth = layer % 4 == 3;
  if (is_fourth && (is_cohere_ || config_.architecture == "smollm3")) return;
  if (is_nemotron_ || !rotates_) return;
  const bool has_own_angles = config_.window_rope && has_window_[layer];
  const RopeConfig& rope = has_own_angles ? *config_.window_rope : config_.rope;
  for (auto head = heads.begin(); head != heads.end();
       head += static_cast<std::ptrdiff_t>(head_dim(layer)))
    rotate_head(rope, head, position);
}

/// The pair is two neighbours in a llama file, whose rows are permuted for that; otherwise an
/// element of the first half and one of the second half.
void PlainModel::rotate_head(const RopeConfig& rope, Vector::iterator head,
                             std::size_t position) const {
  const std::size_t pairs = rope.dim / 2;
  double length = rope.magnitude;
  if (rope.scaling == RopeScaling::Yarn) {
    const double growth = 0.1 * std::log(rope.factor);
    length *= (1 + growth) / (1 + rope.yarn.log_multiplier * growth);
  }
  for (std::size_t i = 0; i < pairs; ++i) {
    const double turn = angle(rope, config_.n_context, i, position);
    const std::size_t own = pairs_are_neighbours_ ? 2 * i : i;
    double& first = head[static_cast<std::ptrdiff_t>(own)];
    double& second = head[static_cast<std::ptrdiff_t>(own + (pairs_are_neighbours_ ? 1 : pairs))];
    const double before = first;
    first = length * (before * std::cos(turn) - second * std::sin(turn));
    second = length * (before * std::sin(turn) + second * std::cos(turn));
  }
}

double PlainModel::temperature(std::size_t position) const {
  const QueryTemperature& of_model = config_.rope.query_temperature;
  if (of_model.growth == 0) return 1;
  const auto whole_steps = position / of_model.step;
  return 1 + of_model.growth * std::log(1.0 + static_cast<double>(whole_steps));
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
  const auto dim = static_cast<std::ptrdiff_t>(head_dim(layer));
  const bool has_own_scale = config_.architecture.starts_with("granite");
  const double scale = is_gemma4_      ? 1
                       : has_own_scale ? config_.scales.attention
                                       : 1 / std::sqrt(static_cast<double>(dim));
  const std::vector<Vector>& keys = keys_[kv_source(layer)];
  const std::size_t sharing = config_.n_heads * head_dim(layer) / keys.front().size();
  const bool is_limited = has_window_[layer] && config_.windows.width > 0;
  const std::size_t window = is_limited ? config_.windows.width : keys.size();
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
      return config_.latent.rank > 0 ? attend_latent(layer, x) : attend(layer, x);
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

/// Values are a projection of their own, or that of the keys.
void PlainModel::append(std::uint32_t layer, const Vector& x) {
  Vector k = project(layer, "attn_k", x);
  Vector v = find(layer, "attn_v.weight") != nullptr ? project(layer, "attn_v", x) : k;
  norm_heads(k, find(layer, "attn_k_norm.weight"));
  rotate(layer, k, keys_[layer].size());
  const auto dim = static_cast<std::ptrdiff_t>(head_dim(layer));
  if (is_gemma4_)
    for (auto head = v.begin(); head != v.end(); head += dim)
      std::ranges::copy(normed(Vector(head, head + dim)), head);
  keys_[layer].push_back(k);
  values_[layer].push_back(v);
}

PlainModel::Vector PlainModel::attend(std::uint32_t layer, const Vector& x) {
  if (kv_source(layer) == layer) append(layer, x);
  const std::vector<Vector>& values = values_[kv_source(layer)];
  Vector q = project(layer, "attn_q", x);
  // Qwen3.5: each head has a query, then a gate.
  Vector gates;
  if (q.size() == 2 * std::size_t{config_.n_heads} * head_dim(layer)) {
    Vector queries;
    for (std::size_t i = 0; i < q.size(); ++i)
      (i / head_dim(layer) % 2 == 0 ? queries : gates).push_back(q[i]);
    q = queries;
  }
  norm_heads(q, find(layer, "attn_q_norm.weight"));
  const std::size_t position = values.size() - 1;
  rotate(layer, q, position);
  for (double& element : q) element *= temperature(position);
  const std::size_t dim = head_dim(layer);
  const std::size_t sharing = q.size() / values.front().size();
  Vector out(q.size());
  for (std::size_t head = 0; head < config_.n_heads; ++head) {
    const std::size_t from = head / sharing * dim;
    const Vector weights = weights_of(layer, q, head);
    for (std::size_t p = 0; p < weights.size(); ++p)
      for (std::size_t d = 0; d < dim; ++d) out[head * dim + d] += weights[p] * values[p][from + d];
  }
  for (std::size_t i = 0; i < gates.size(); ++i) out[i] /= 1 + std::exp(-gates[i]);
  return project(layer, "attn_output", out);
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
  const Vector first = x;
  for (std::uint32_t layer = 0; layer < config_.n_layers; ++layer) {
    const Matrix* attention_norm = find(layer, "attn_norm.weight");
    const Vector input = attention_norm != nullptr ? normed(x, *attention_norm) : x;
    if (config_.layers[layer].mixer != Mixer::None)
      add_branch(layer, x, mix(layer, input), "post_attention_norm.weight");
    const Matrix* ffn_norm = find(layer, ffn_norm_.c_str());
    const Vector norm = is_cohere_ ? input : ffn_norm != nullptr ? normed(x, *ffn_norm) : x;
    const bool is_dense = find(layer, "ffn_down.weight") != nullptr;
    const bool has_experts = find(layer, "ffn_gate_inp.weight") != nullptr;
    if (!is_dense && !has_experts) continue;
    Vector branch = is_dense ? feed_forward(layer, norm, "") : experts(layer, norm, norm);
    if (is_dense && has_experts) branch = with_experts(layer, x, branch);
    add_branch(layer, x, branch, "post_ffw_norm.weight");
    if (embedding_width_ > 0) add_embedding(layer, x, first, token);
    if (const Matrix* scale = find(layer, "layer_output_scale.weight"))
      for (double& element : x) element *= scale->values.front();
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
