#include "tests/checks/local_model/local_adapters.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "common/expects.hpp"
#include "common/random.hpp"
#include "kernels/model/config.hpp"
#include "kernels/numerics/f16.hpp"

namespace leasehold {
namespace {

/// The largest value. A product of rows of a norm then stays near 1.
constexpr float kReach = 1.0F / 16;
/// Large enough for any adapter, so that its matrices follow one another as a worker places them.
constexpr std::uint64_t kExtentBytes = std::uint64_t{1} << 62;

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

void fill_random(SeededRandom& random, TensorType type, std::span<std::byte> bytes) {
  const std::size_t element_bytes = block_shape(type).size_bytes;
  for (std::size_t at = 0; at < bytes.size(); at += element_bytes) {
    const float value = (static_cast<float>(random.below(1u << 16)) * 0x1p-15F - 1.0F) * kReach;
    const Half half = f16_from_f32(value);
    std::memcpy(&bytes[at], type == TensorType::F32 ? static_cast<const void*>(&value) : &half,
                element_bytes);
  }
}

/// The weights of random matrices: those that the layers have among the adapter's targets.
std::vector<AdaptedWeight> random_weights(const LocalAdapter& adapter,
                                          std::span<const LayerWeights> layers) {
  std::vector<AdaptedWeight> weights;
  for (std::uint32_t layer = 0; layer < layers.size(); ++layer) {
    for (const TargetOf& of : kTargets) {
      const WeightMatrix& weight = layers[layer].*of.weight;
      const bool is_target = adapter.targets.empty() || adapter.targets.contains(of.target);
      if (!weight.data || !is_target) continue;
      weights.push_back({.layer = layer,
                         .target = of.target,
                         .type = adapter.type,
                         .rank = adapter.rank,
                         .scale = 2.0F,
                         .n_in = weight.n_in,
                         .n_out = weight.n_out});
    }
  }
  return weights;
}

}  // namespace

Result<LocalAdapter> LocalAdapter::open(const std::string& model_path, const std::string& path) {
  const GgufFile model = TRY(GgufFile::open(model_path));
  const ModelConfig config = TRY(read_config(model));
  const std::filesystem::path whole = std::filesystem::absolute(path);
  const UniqueFd folder(::open(whole.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return fail_file("opening " + whole.parent_path().string(), errno);
  AdapterFile file = TRY(AdapterFile::open(folder.get(), whole.filename().string(), config));
  return LocalAdapter{.file = std::make_shared<AdapterFile>(std::move(file))};
}

std::uint32_t max_rank(std::span<const LocalAdapter> adapters) {
  std::uint32_t most = 0;
  for (const LocalAdapter& adapter : adapters) {
    if (!adapter.file) most = std::max(most, adapter.rank);
    if (adapter.file)
      for (const AdaptedWeight& weight : adapter.file->weights())
        most = std::max(most, weight.rank);
  }
  return most;
}

LocalAdapters::LocalAdapters(std::span<const LocalAdapter> adapters,
                             std::span<const LayerWeights> layers)
    : adapters_(adapters.begin(), adapters.end()) {
  for (std::size_t i = 0; i < adapters.size(); ++i) {
    matrices_.emplace_back(static_cast<std::uint32_t>(layers.size()));
    const std::vector<AdaptedWeight> random = random_weights(adapters[i], layers);
    const std::span<const AdaptedWeight> weights =
        adapters[i].file ? adapters[i].file->weights() : std::span(random);
    add(i, weights);
  }
}

void LocalAdapters::add(std::size_t adapter, std::span<const AdaptedWeight> weights) {
  const Result<AdapterLayout> layout = make_adapter_layout(weights, kExtentBytes);
  ensures(layout && layout->n_extents <= 1, "the matrices of an adapter fit one extent");
  for (const AdaptedWeight& weight : weights)
    matrices_[adapter].of(weight.layer, weight.target) = {
        .type = weight.type, .rank = weight.rank, .scale = weight.scale};
  const std::size_t first = size_bytes_;
  for (AdapterPiece piece : layout->pieces) {
    const std::uint64_t end = first + piece.offset + piece.size_bytes;
    piece.offset += first;
    pieces_.push_back({adapter, weights[piece.weight], piece});
    size_bytes_ = std::max(size_bytes_,
                           (end + kAdapterAlignment - 1) / kAdapterAlignment * kAdapterAlignment);
  }
}

Result<void> LocalAdapters::fill(LeasedMapping memory, Backend& backend, const GateSet& gates) {
  memory_ = std::move(memory);
  std::vector<SeededRandom> random;
  for (const LocalAdapter& adapter : adapters_) random.emplace_back(adapter.seed);
  for (const Piece& piece : pieces_) {
    const Leased<std::byte> at =
        memory_->writable_base() + static_cast<std::ptrdiff_t>(piece.matrix.offset);
    std::vector<std::byte> bytes(piece.matrix.size_bytes);
    if (AdapterFile* file = adapters_[piece.adapter].file.get(); file != nullptr)
      TRY(file->read(piece.matrix, 0, bytes));
    else
      fill_random(random[piece.adapter], piece.weight.type, bytes);
    backend.copy_in(
        {.gates = &gates},
        {.site = LaunchSite::Commit, .to = at, .from = bytes.data(), .size_bytes = bytes.size()});
    LowRankMatrix& matrix = matrices_[piece.adapter].of(piece.weight.layer, piece.weight.target);
    (piece.matrix.half == AdapterHalf::B ? matrix.b : matrix.a) = at;
  }
  return {};
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
