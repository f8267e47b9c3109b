/// A second implementation of every architecture, in doubles and one token at a time: the reference
/// on dequantised weights. It shares only the GGUF directory reader with the worker.
///
/// Source: Touvron et al. 2023 (LLaMA); Yang et al. 2024, 2025 (Qwen2, Qwen3); Jiang et al. 2024
/// (Mixtral); Peng et al. 2023 (YaRN); Abdin et al. 2024 (Phi-3); Gemma Team 2024, 2025 (Gemma 2,
/// 3, 4); OLMo Team 2025 (Olmo 2, 3); OpenAI 2025 (gpt-oss); DeepSeek-AI 2024 (V2, V3).
/// tests/support/plain_formats supplies the weights. Slow: for small models.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kernels/model/config.hpp"

namespace leasehold::testing {

class PlainModel {
 public:
  using Vector = std::vector<double>;

  /// With `n_context` above 0, the model is limited to that context. Throws std::runtime_error for
  /// a file that does not load.
  explicit PlainModel(const std::string& path, std::uint32_t n_context = 0);

  /// Adds alpha / rank · B·A of a GGUF adapter to each weight that it changes.
  void add_adapter(const std::string& path);

  /// Returns the logits after one more token.
  Vector next(std::int32_t token);

  /// The hidden state of the last token, after the output norm.
  const Vector& hidden() const { return hidden_; }

  /// Restarts at the first position.
  void forget();

  const ModelConfig& config() const { return config_; }

 private:
  struct Matrix {
    std::size_t columns = 0;
    Vector values;  // [rows, columns]
  };

  const Matrix& matrix(const std::string& name) const { return tensors_.at(name + ".weight"); }
  const Matrix& of_layer(std::uint32_t layer, const char* name) const;
  /// Null if the model has no such tensor.
  const Matrix* find(std::uint32_t layer, const char* name) const;
  /// Divides the rows of a fused tensor, if the file has it, among tensors with these names.
  void divide(const std::string& fused,
              const std::vector<std::pair<std::string, std::size_t>>& rows);
  void divide_fused_tensors();
  static void add_to(Vector& x, const Vector& more, double weight = 1);
  void read_gemma4(const GgufFile& file);
  std::size_t head_dim(std::uint32_t layer) const;
  std::uint32_t kv_source(std::uint32_t layer) const;
  void append(std::uint32_t layer, const Vector& x);
  Vector mix(std::uint32_t layer, const Vector& x);
  Vector attend(std::uint32_t layer, const Vector& x);
  Vector attend_latent(std::uint32_t layer, const Vector& x);
  std::pair<Vector, Vector> key_and_value(std::uint32_t layer, const Vector& latent,
                                          std::size_t head) const;
  Vector latent_head(std::uint32_t layer, const Vector& query, std::size_t head) const;
  // Layers with recurrent state: plain_recurrent.cpp.
  struct RecurrentInput;
  Vector delta_net(std::uint32_t layer, const Vector& x);
  Vector mamba(std::uint32_t layer, const Vector& x);
  Vector short_convolution(std::uint32_t layer, const Vector& x);
  RecurrentInput delta_input(std::uint32_t layer, const Vector& x) const;
  Vector convolve(std::uint32_t layer, const std::string& name, const Vector& input);
  Vector project(std::uint32_t layer, const std::string& what, const Vector& x) const;
  Vector feed_forward(std::uint32_t layer, const Vector& x, const std::string& suffix) const;
  Vector experts(std::uint32_t layer, const Vector& routed, const Vector& x) const;
  Vector with_experts(std::uint32_t layer, const Vector& x, const Vector& dense) const;
  void add_embedding(std::uint32_t layer, Vector& x, const Vector& first, std::int32_t token) const;
  void drop_groups(Vector& keys) const;
  Vector expert(std::uint32_t layer, const Vector& x, std::size_t number) const;
  void add_branch(std::uint32_t layer, Vector& x, Vector branch, const char* norm) const;
  Vector weights_of(std::uint32_t layer, const Vector& q, std::size_t head) const;
  void norm_heads(Vector& heads, const Matrix* weight) const;
  void rotate(std::uint32_t layer, Vector& heads, std::size_t position) const;
  void rotate_head(const RopeConfig& rope, Vector::iterator head, std::size_t position) const;
  double temperature(std::size_t position) const;
  double gated(double gate, double up) const;
  static Vector times(const Matrix& matrix, const Vector& x);
  static Vector times(const Matrix& matrix, const Vector& x, std::size_t first_row,
                      std::size_t n_rows);
  Vector normed(const Vector& x, const Matrix& weight) const;
  Vector normed(const Vector& row) const;

  ModelConfig config_;
  bool pairs_are_neighbours_ = true;
  // Granite's factors (Stallone et al. 2024); the logits are divided by the last one.
  double embedding_scale_ = 1;
  double residual_scale_ = 1;
  double logit_scale_ = 1;
  double expert_scale_ = 1;
  bool has_sigmoid_experts_ = false;
  bool has_normed_experts_ = true;
  double latent_scale_ = 1;  // multiplies the scores of latent attention
  bool is_gemma_ = false;
  bool is_gpt_oss_ = false;
  bool rotates_ = true;
  bool is_nemotron_ = false;  // one norm per layer, squared relu without a gate, no rotation
  std::string ffn_norm_ = "ffn_norm.weight";  // the name of the norm before the feed-forward
  std::uint32_t full_every_ = 1;              // layers with this distance have no window
  std::vector<bool> has_window_;              // [n_layers]
  bool is_gemma4_ = false;
  bool is_cohere_ = false;           // Cohere 2025, Command A
  std::uint32_t first_shared_ = 0;   // of the layers that share keys and values
  std::size_t embedding_width_ = 0;  // of each layer; 0: none
  Vector hidden_;
  std::map<std::string, Matrix> tensors_;
  std::vector<std::vector<Vector>>
      keys_;  // [n_layers][positions][n_kv_heads · head_dim], or latent
  std::vector<std::vector<Vector>> values_;  // likewise
  std::vector<std::vector<Vector>> inputs_;  // [n_layers][positions][channels], of convolutions
  std::vector<std::vector<Vector>> states_;  // [n_layers][heads][key_dim · head_dim]
};

}  // namespace leasehold::testing
