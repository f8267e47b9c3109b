#include "tests/checks/local_model/local_adapters.hpp"

#include <algorithm>
#include <cstring>

#include "common/expects.hpp"
#include "common/random.hpp"
#include "kernels/numerics/f16.hpp"

namespace leasehold {
namespace {

constexpr std::size_t kAlignment = 64;
/// The largest value. A product of rows of a norm then stays near 1.
constexpr float kReach = 1.0F / 16;

struct TargetOf {
  AdapterTarget target;
  WeightMatrix LayerWeights::* weight;
};
constexpr TargetOf kTargets[] = {{AdapterTarget::Query, &LayerWeights::query},
                                 {AdapterTarget::Key, &LayerWeights::key},
                                 {AdapterTarget::Value, &LayerWeights::value},
                                 {AdapterTarget::Output, &LayerWeights::attention_output},
                                 {AdapterTarget::Gate, &LayerWeights::ffn_gate},
                                 {AdapterTarget::Up, &LayerWeights::ffn_up},
                                 {AdapterTarget::Down, &LayerWeights::ffn_down}};

std::vector<std::byte> random_matrix(SeededRandom& random, TensorType type, std::size_t n) {
  std::vector<std::byte> bytes(row_size_bytes(type, n));
  for (std::size_t i = 0; i < n; ++i) {
    const float value = (static_cast<float>(random.below(1u << 16)) * 0x1p-15F - 1.0F) * kReach;
    const Half half = f16_from_f32(value);
    if (type == TensorType::F32)
      std::memcpy(&bytes[i * sizeof value], &value, sizeof value);
    else
      std::memcpy(&bytes[i * sizeof half], &half, sizeof half);
  }
  return bytes;
}

}  // namespace

LocalAdapters::LocalAdapters(std::span<const LocalAdapter> adapters,
                             std::span<const LayerWeights> layers)
    : adapters_(adapters.begin(), adapters.end()) {
  for (std::size_t i = 0; i < adapters.size(); ++i) {
    matrices_.emplace_back(static_cast<std::uint32_t>(layers.size()));
    for (std::uint32_t layer = 0; layer < layers.size(); ++layer)
      for (const TargetOf& of : kTargets) add(i, layer, of.target, layers[layer].*of.weight);
  }
}

void LocalAdapters::add(std::size_t adapter, std::uint32_t layer, AdapterTarget target,
                        const WeightMatrix& weight) {
  const LocalAdapter& is = adapters_[adapter];
  if (!weight.data || (!is.targets.empty() && !is.targets.contains(target))) return;
  matrices_[adapter].of(layer, target) = {.type = is.type, .rank = is.rank, .scale = 2.0F};
  for (const bool is_b : {false, true}) {
    const std::uint32_t width = is_b ? weight.n_out : weight.n_in;
    pieces_.push_back({adapter, layer, target, is_b, width, size_bytes_});
    const std::size_t bytes = row_size_bytes(is.type, std::size_t{is.rank} * width);
    size_bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
}

void LocalAdapters::fill(LeasedMapping memory, Backend& backend, const GateSet& gates) {
  memory_ = std::move(memory);
  std::vector<SeededRandom> random;
  for (const LocalAdapter& adapter : adapters_) random.emplace_back(adapter.seed);
  for (const Piece& piece : pieces_) {
    const LocalAdapter& is = adapters_[piece.adapter];
    const Leased<std::byte> at =
        memory_->writable_base() + static_cast<std::ptrdiff_t>(piece.offset_bytes);
    const std::vector<std::byte> bytes =
        random_matrix(random[piece.adapter], is.type, std::size_t{is.rank} * piece.width);
    backend.copy_in(
        {.gates = &gates},
        {.site = LaunchSite::Commit, .to = at, .from = bytes.data(), .size_bytes = bytes.size()});
    LowRankMatrix& matrix = matrices_[piece.adapter].of(piece.layer, piece.target);
    (piece.is_b ? matrix.b : matrix.a) = at;
  }
}

void LocalAdapters::choose(std::uint32_t sequence, std::optional<std::uint32_t> adapter) {
  expects(!adapter || *adapter < adapters_.size(), "the model has the adapter");
  chosen_.erase(sequence);
  if (adapter) chosen_.emplace(sequence, *adapter);
}

std::optional<std::uint32_t> LocalAdapters::chosen(std::uint32_t sequence) const {
  const auto found = chosen_.find(sequence);
  return found == chosen_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<const AdapterMatrices*> LocalAdapters::of(std::span<const RowRef> sequences) const {
  std::vector<const AdapterMatrices*> all;
  for (const RowRef& at : sequences) {
    const std::optional<std::uint32_t> adapter = chosen(at.sequence);
    all.push_back(adapter ? &matrices_[*adapter] : nullptr);
  }
  const bool has_any = std::ranges::any_of(all, [](const auto* one) { return one != nullptr; });
  return has_any ? all : std::vector<const AdapterMatrices*>{};
}

}  // namespace leasehold
