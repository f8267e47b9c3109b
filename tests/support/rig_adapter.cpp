#include "tests/support/rig_adapter.hpp"

#include <span>

#include "common/random.hpp"
#include "tests/support/required.hpp"

namespace leasehold::testing {
namespace {

/// Large enough that a few tokens show the adapter.
constexpr float kLargest = 0.5F;

struct Shape {
  std::uint32_t n_in = 0;
  std::uint32_t n_out = 0;
  std::size_t elements() const { return std::size_t{n_in} + n_out; }  // for each rank
};

Shape shape_of(const ModelConfig& config, std::uint32_t layer, AdapterTarget target) {
  const LayerConfig& of = config.layers[layer];
  const std::uint32_t queries = config.n_heads * of.head_dim;
  const std::uint32_t keys = of.n_kv_heads * of.head_dim;
  switch (target) {
    case AdapterTarget::Query:
      return {config.n_embd, queries};
    case AdapterTarget::Key:
    case AdapterTarget::Value:
      return {config.n_embd, keys};
    case AdapterTarget::Output:
      return {queries, config.n_embd};
    case AdapterTarget::Gate:
    case AdapterTarget::Up:
      return {config.n_embd, of.n_ff};
    case AdapterTarget::Down:
      return {of.n_ff, config.n_embd};
  }
  return {};
}

template <class Visit>
void for_each_weight(const ModelConfig& config, Visit visit) {
  for (std::uint32_t layer = 0; layer < config.n_layers; ++layer) {
    for (std::size_t i = 0; i < kAdapterTargets; ++i) {
      const auto target = static_cast<AdapterTarget>(i);
      visit(layer, target, shape_of(config, layer, target));
    }
  }
}

std::size_t bytes_of(const ModelConfig& config, std::uint32_t rank) {
  std::size_t elements = 0;
  for_each_weight(config, [&](std::uint32_t, AdapterTarget, const Shape& shape) {
    elements += rank * shape.elements();
  });
  return elements * sizeof(float);
}

}  // namespace

RigAdapter::RigAdapter(const ModelConfig& config, std::uint64_t seed, std::uint32_t rank)
    : size_bytes(bytes_of(config, rank)),
      memory(required(MemoryObject::create({.name = "rig-adapter", .size_bytes = size_bytes}))),
      mapping(required(LeasedMapping::map(memory.fd(), size_bytes, MapAccess::ReadWrite))),
      matrices(std::make_shared<AdapterMatrices>(config.n_layers)) {
  const Mapping own = required(Mapping::map(memory.fd(), size_bytes, MapAccess::ReadWrite));
  const std::span<float> values(reinterpret_cast<float*>(own.data()), size_bytes / sizeof(float));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = kLargest * (2.0F * random_unit_at(seed, i) - 1.0F);
  std::size_t at = 0;
  for_each_weight(config, [&](std::uint32_t layer, AdapterTarget target, const Shape& shape) {
    LowRankMatrix& matrix = matrices->of(layer, target);
    matrix.type = TensorType::F32;
    matrix.rank = rank;
    matrix.scale = 1.0F / static_cast<float>(rank);
    matrix.a = mapping.base() + static_cast<std::ptrdiff_t>(at);
    at += std::size_t{rank} * shape.n_in * sizeof(float);
    matrix.b = mapping.base() + static_cast<std::ptrdiff_t>(at);
    at += std::size_t{rank} * shape.n_out * sizeof(float);
  });
}

}  // namespace leasehold::testing
