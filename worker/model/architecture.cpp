#include "worker/model/architecture.hpp"

#include <algorithm>
#include <iterator>

namespace leasehold {
namespace {

// The order is that of use in the forward pass, so that a layer is read front to back.
constexpr TensorRule kLlamaBlock[] = {
    {"attn_norm.weight", Width::Embedding, Width::One},
    {"attn_q.weight", Width::Embedding, Width::Query},
    {"attn_k.weight", Width::Embedding, Width::KeyValue},
    {"attn_v.weight", Width::Embedding, Width::KeyValue},
    {"attn_output.weight", Width::Query, Width::Embedding},
    {"ffn_norm.weight", Width::Embedding, Width::One},
    {"ffn_gate.weight", Width::Embedding, Width::FeedForward},
    {"ffn_up.weight", Width::Embedding, Width::FeedForward},
    {"ffn_down.weight", Width::FeedForward, Width::Embedding},
};

// GGUF converters permute llama's query and key rows so that rotated pairs are neighbours.
constexpr Architecture kArchitectures[] = {
    {"llama", RopeStyle::Interleaved, kLlamaBlock},
};

}  // namespace

const Architecture* find_architecture(std::string_view name) {
  const auto* found = std::ranges::find(kArchitectures, name, &Architecture::name);
  return found == std::end(kArchitectures) ? nullptr : found;
}

}  // namespace leasehold
