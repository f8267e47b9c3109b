#include "tools/make_model/tensor_plan.hpp"

#include <fmt/format.h>

#include <utility>

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
  void vector(std::string name, std::uint64_t columns, Fill fill) {
    add({.name = std::move(name), .columns = columns, .fill = fill});
  }
  void gain(std::string name, std::uint64_t columns) {
    vector(std::move(name), columns, Fill::Gain);
  }
  void bias(std::string name, std::uint64_t columns) {
    vector(std::move(name), columns, Fill::Bias);
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

bool is_qwen2(Architecture architecture) {
  return architecture == Architecture::Qwen2 || architecture == Architecture::Qwen2Moe;
}
bool is_qwen3(Architecture architecture) {
  return architecture == Architecture::Qwen3 || architecture == Architecture::Qwen3Moe;
}

void plan_attention(Planner& planner, const ModelRequest& request, const std::string& layer,
                    bool is_fine) {
  const ModelShape& shape = request.shape;
  planner.gain(layer + "attn_norm.weight", shape.embd);
  planner.matrix(layer + "attn_q.weight", shape.query_width(), shape.embd);
  planner.matrix(layer + "attn_k.weight", shape.kv_width(), shape.embd);
  planner.fine_matrix(layer + "attn_v.weight", shape.kv_width(), shape.embd, is_fine);
  planner.matrix(layer + "attn_output.weight", shape.embd, shape.query_width());
  if (is_qwen2(request.architecture)) {
    planner.bias(layer + "attn_q.bias", shape.query_width());
    planner.bias(layer + "attn_k.bias", shape.kv_width());
    planner.bias(layer + "attn_v.bias", shape.kv_width());
  }
  if (is_qwen3(request.architecture)) {
    planner.gain(layer + "attn_q_norm.weight", shape.head_dim());
    planner.gain(layer + "attn_k_norm.weight", shape.head_dim());
  }
}

void plan_experts(Planner& planner, const ModelRequest& request, const std::string& layer,
                  bool is_fine) {
  const ModelShape& shape = request.shape;
  const std::uint32_t width = shape.expert_width();
  planner.matrix(layer + "ffn_gate_inp.weight", shape.experts, shape.embd);
  planner.matrix(layer + "ffn_gate_exps.weight", width, shape.embd, shape.experts);
  planner.matrix(layer + "ffn_up_exps.weight", width, shape.embd, shape.experts);
  planner.matrix(layer + "ffn_down_exps.weight", shape.embd, width, shape.experts, is_fine);
  if (request.architecture != Architecture::Qwen2Moe) return;
  planner.vector(layer + "ffn_gate_inp_shexp.weight", shape.embd, Fill::Gate);
  planner.matrix(layer + "ffn_gate_shexp.weight", shape.ffn, shape.embd);
  planner.matrix(layer + "ffn_up_shexp.weight", shape.ffn, shape.embd);
  planner.fine_matrix(layer + "ffn_down_shexp.weight", shape.embd, shape.ffn, is_fine);
}

void plan_feed_forward(Planner& planner, const ModelRequest& request, const std::string& layer,
                       bool is_fine) {
  const ModelShape& shape = request.shape;
  planner.gain(layer + "ffn_norm.weight", shape.embd);
  if (shape.experts > 0) return plan_experts(planner, request, layer, is_fine);
  planner.matrix(layer + "ffn_gate.weight", shape.ffn, shape.embd);
  planner.matrix(layer + "ffn_up.weight", shape.ffn, shape.embd);
  planner.fine_matrix(layer + "ffn_down.weight", shape.embd, shape.ffn, is_fine);
}

}  // namespace

std::vector<PlannedTensor> plan_tensors(const ModelRequest& request) {
  const ModelShape& shape = request.shape;
  Planner planner(request.type, request.is_mix);
  planner.fine_matrix("token_embd.weight", shape.vocab, shape.embd, shape.tied);
  for (std::uint32_t i = 0; i < shape.layers; ++i) {
    const std::string layer = fmt::format("blk.{}.", i);
    const bool is_fine = is_fine_layer(i, shape.layers);
    plan_attention(planner, request, layer, is_fine);
    plan_feed_forward(planner, request, layer, is_fine);
  }
  if (request.rope == Rope::Divisors)
    planner.vector("rope_freqs.weight", shape.head_dim() / 2, Fill::Divisor);
  planner.gain("output_norm.weight", shape.embd);
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
