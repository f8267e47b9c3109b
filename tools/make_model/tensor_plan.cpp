#include "tools/make_model/tensor_plan.hpp"

#include <fmt/format.h>

#include <utility>

namespace leasehold::make_model {
namespace {

/// Collects tensors and hands out their offsets.
class Planner {
 public:
  explicit Planner(TensorType matrix_type) : matrix_type_(matrix_type) {}

  void matrix(std::string name, std::uint64_t rows, std::uint64_t columns) {
    add({.name = std::move(name), .rows = rows, .columns = columns, .type = matrix_type_});
  }
  void gain(std::string name, std::uint64_t columns) {
    add({.name = std::move(name), .columns = columns, .fill = Fill::Gain});
  }
  void bias(std::string name, std::uint64_t columns) {
    add({.name = std::move(name), .columns = columns, .fill = Fill::Bias});
  }
  std::vector<PlannedTensor> take() { return std::move(tensors_); }

 private:
  void add(PlannedTensor tensor) {
    tensor.offset = end_;
    end_ = align_up(end_ + tensor.size_bytes());
    tensors_.push_back(std::move(tensor));
  }

  TensorType matrix_type_;
  std::uint64_t end_ = 0;
  std::vector<PlannedTensor> tensors_;
};

void plan_attention(Planner& planner, const ModelRequest& request, const std::string& layer) {
  const ModelShape& shape = request.shape;
  planner.gain(layer + "attn_norm.weight", shape.embd);
  planner.matrix(layer + "attn_q.weight", shape.embd, shape.embd);
  planner.matrix(layer + "attn_k.weight", shape.kv_width(), shape.embd);
  planner.matrix(layer + "attn_v.weight", shape.kv_width(), shape.embd);
  planner.matrix(layer + "attn_output.weight", shape.embd, shape.embd);
  if (request.architecture == Architecture::Qwen2) {
    planner.bias(layer + "attn_q.bias", shape.embd);
    planner.bias(layer + "attn_k.bias", shape.kv_width());
    planner.bias(layer + "attn_v.bias", shape.kv_width());
  }
  if (request.architecture == Architecture::Qwen3) {
    planner.gain(layer + "attn_q_norm.weight", shape.head_dim());
    planner.gain(layer + "attn_k_norm.weight", shape.head_dim());
  }
}

void plan_feed_forward(Planner& planner, const ModelShape& shape, const std::string& layer) {
  planner.gain(layer + "ffn_norm.weight", shape.embd);
  planner.matrix(layer + "ffn_gate.weight", shape.ffn, shape.embd);
  planner.matrix(layer + "ffn_up.weight", shape.ffn, shape.embd);
  planner.matrix(layer + "ffn_down.weight", shape.embd, shape.ffn);
}

}  // namespace

std::vector<PlannedTensor> plan_tensors(const ModelRequest& request) {
  const ModelShape& shape = request.shape;
  Planner planner(request.type);
  planner.matrix("token_embd.weight", shape.vocab, shape.embd);
  for (std::uint32_t i = 0; i < shape.layers; ++i) {
    const std::string layer = fmt::format("blk.{}.", i);
    plan_attention(planner, request, layer);
    plan_feed_forward(planner, shape, layer);
  }
  planner.gain("output_norm.weight", shape.embd);
  if (!shape.tied) planner.matrix("output.weight", shape.vocab, shape.embd);
  return planner.take();
}

std::uint64_t data_size_bytes(const std::vector<PlannedTensor>& plan) {
  return plan.empty() ? 0 : align_up(plan.back().offset + plan.back().size_bytes());
}

}  // namespace leasehold::make_model
