#include "kernels/model/kv_type.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/expects.hpp"

namespace leasehold {
namespace {

constexpr KvType kKvTypes[] = {KvType::F16, KvType::F32, KvType::Q8_0};

StateShape state_shape(Mixer mixer, const RecurrentConfig& recurrent) {
  if (!has_state(mixer)) return {};
  return {.n_heads = recurrent.n_heads,
          .head_floats = recurrent.key_dim * recurrent.head_dim,
          .convolution_floats = (recurrent.n_taps - 1) * recurrent.channels};
}

std::vector<StateShape> state_shapes(const ModelConfig& config) {
  std::vector<StateShape> shapes;
  for (const LayerConfig& layer : config.layers)
    shapes.push_back(state_shape(layer.mixer, config.recurrent));
  return shapes;
}

/// Puts the layers with a window into groups of at most `block_bytes`, in order. Returns the number
/// of these groups.
std::uint32_t group_windows(const WindowConfig& windows, std::uint64_t block_bytes,
                            std::vector<KvLayer>& layers) {
  std::uint32_t group = 0;
  std::uint64_t left = 0;
  for (std::uint32_t i = 0; i < layers.size(); ++i) {
    if (!windows.limits(i) || layers[i].size_bytes() == 0) continue;
    if (group == 0 || layers[i].size_bytes() > left) {
      ++group;
      left = block_bytes;
    }
    layers[i].group = group;
    left -= layers[i].size_bytes();
  }
  return group;
}

/// Gives each layer its group. A block is as large as the layers without a window need, since a
/// long text mostly has their blocks, and larger only if there would be too many groups. A model
/// whose layers are all of one kind has one group.
void assign_groups(const WindowConfig& windows, std::vector<KvLayer>& layers) {
  std::uint64_t of_full = 0;
  std::uint64_t largest = 0;
  for (std::uint32_t i = 0; i < layers.size(); ++i) {
    if (!windows.limits(i)) of_full += layers[i].size_bytes();
    if (windows.limits(i)) largest = std::max(largest, layers[i].size_bytes());
  }
  if (of_full == 0 || largest == 0) return;
  std::uint64_t block_bytes = std::max(of_full, largest);
  while (group_windows(windows, block_bytes, layers) >= KvLayout::kMaxGroups)
    block_bytes += largest;
}

}  // namespace

std::string_view name(KvType type) {
  switch (type) {
    case KvType::F32:
      return "f32";
    case KvType::F16:
      return "f16";
    case KvType::Q8_0:
      return "q8_0";
  }
  return {};
}

std::optional<KvType> kv_type_from_name(std::string_view text) {
  const auto* found = std::ranges::find(kKvTypes, text, [](KvType type) { return name(type); });
  if (found == std::end(kKvTypes)) return std::nullopt;
  return *found;
}

const std::vector<std::string>& kv_type_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const KvType type : kKvTypes) all.emplace_back(name(type));
    return all;
  }();
  return names;
}

std::string announced_arithmetic(Arithmetic arithmetic, KvType type) {
  const std::string_view matrices = name(arithmetic);
  if (type == KvType::F16) return std::string(matrices);
  return fmt::format("{}+{}", matrices, name(type));
}

KvLayout kv_layout(const ModelConfig& config, KvType type) {
  std::vector<KvLayer> layers;
  for (const LayerConfig& layer : config.layers) {
    expects(can_store(type, layer.head_dim), "the heads can be stored as the type");
    layers.push_back({.n_kv_heads = layer.stores_kv() ? layer.n_kv_heads : 0,
                      .head_dim = layer.head_dim,
                      .type = type,
                      .latent_dim = layer.latent_dim});
  }
  const std::uint64_t piece_bytes = StateLayout::largest_piece_bytes(state_shapes(config));
  // With a recurrent state a text can only start where its state is, not where its windows are.
  if (piece_bytes == 0) assign_groups(config.windows, layers);
  return KvLayout(std::move(layers), piece_bytes, config.windows.width);
}

bool has_recurrent_state(const ModelConfig& config) {
  return StateLayout::largest_piece_bytes(state_shapes(config)) > 0;
}

std::uint32_t most_state_blocks(const ModelConfig& config) {
  const std::vector<StateShape> shapes = state_shapes(config);
  return StateLayout(shapes, StateLayout::largest_piece_bytes(shapes)).blocks();
}

StateLayout state_layout(const ModelConfig& config, const KvLayout& kv) {
  return StateLayout(state_shapes(config), kv.block_size_bytes());
}

Result<KvLayout> kv_layout_of(const ModelConfig& config, KvType type) {
  for (const LayerConfig& layer : config.layers) {
    if (can_store(type, layer.head_dim)) continue;
    return fail(Errc::BadRequest,
                fmt::format("--kv-type {} needs heads of a multiple of {} elements, and those of "
                            "{} have {}; use --kv-type f16",
                            name(type), kKvScaleBlock, config.name, layer.head_dim));
  }
  return kv_layout(config, type);
}

}  // namespace leasehold
