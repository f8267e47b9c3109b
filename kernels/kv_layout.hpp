/// How keys and values lie in the blocks of the paged KV cache. Plain data; nothing here owns
/// memory. C++20-clean.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace leasehold {

/// How keys and values are stored (Q8_0: kernels/numerics/kv_q8.hpp). The values are part of the
/// key of stored blocks; do not change them.
enum class KvType : std::uint8_t { F32 = 0, F16 = 1, Q8_0 = 2 };  // NOLINT: GGUF's name
/// Bytes of one element. Q8_0 also stores scales.
constexpr std::uint32_t size_bytes(KvType type) {
  if (type == KvType::Q8_0) return 1;
  return type == KvType::F32 ? 4 : 2;
}
/// Elements of a head that share a scale of Q8_0.
inline constexpr std::uint32_t kKvScaleBlock = 32;
/// True if heads of this width can be stored as `type`.
constexpr bool can_store(KvType type, std::uint32_t head_dim) {
  return type != KvType::Q8_0 || head_dim % kKvScaleBlock == 0;
}

/// The keys and values of one layer in a block, which holds `kBlockTokens` consecutive positions of
/// one sequence:
///   [n_planes: K, V][n_kv_heads] heads, each [kBlockTokens][head_dim] of `type`, and with Q8_0 the
///   scales [kBlockTokens][head_dim / kKvScaleBlock] as f16 behind them
/// A *latent* layer (DeepSeek-AI 2024, multi-head latent attention) stores keys only: a value is
/// the first `latent_dim` elements of its key. Precondition: can_store(type, head_dim).
struct KvLayer {
  static constexpr std::uint32_t kBlockTokens = 16;

  std::uint64_t offset_bytes = 0;  ///< From the start of a block of the group to the keys.
  std::uint32_t n_kv_heads = 0;
  std::uint32_t head_dim = 0;
  KvType type = KvType::F16;
  std::uint32_t latent_dim = 0;  ///< 0: values are stored; otherwise at most head_dim.
  std::uint32_t group = 0;       ///< The group whose blocks hold the layer; see KvLayout.

  constexpr bool is_latent() const { return latent_dim != 0; }
  /// Elements of a value.
  constexpr std::uint32_t value_dim() const { return is_latent() ? latent_dim : head_dim; }
  constexpr std::uint32_t n_planes() const { return is_latent() ? 1 : 2; }

  /// Scales of one position of one head.
  constexpr std::uint32_t n_scales() const {
    return type == KvType::Q8_0 ? head_dim / kKvScaleBlock : 0;
  }
  constexpr std::uint32_t head_size_bytes() const {
    return kBlockTokens * (head_dim * leasehold::size_bytes(type) + n_scales() * kScaleBytes);
  }
  constexpr std::uint64_t plane_size_bytes() const {
    return std::uint64_t{n_kv_heads} * head_size_bytes();
  }
  constexpr std::uint64_t size_bytes() const { return n_planes() * plane_size_bytes(); }
  /// The offset from the keys to the values.
  constexpr std::uint64_t values_offset_bytes() const {
    return is_latent() ? 0 : plane_size_bytes();
  }
  /// The offset from the start of a block to the keys (plane 0) or values (1) of one head.
  constexpr std::uint64_t head_offset_bytes(std::uint32_t plane, std::uint32_t kv_head) const {
    return offset_bytes + plane * values_offset_bytes() +
           std::uint64_t{kv_head} * head_size_bytes();
  }
  /// The offset from the start of a head to the [head_dim] elements of the position in `slot`,
  /// which is 0 … kBlockTokens - 1.
  constexpr std::uint32_t entry_offset_bytes(std::uint32_t slot) const {
    return slot * head_dim * leasehold::size_bytes(type);
  }
  /// The offset from the start of a head to the [n_scales()] scales of the position in `slot`.
  constexpr std::uint32_t scales_offset_bytes(std::uint32_t slot) const {
    return entry_offset_bytes(kBlockTokens) + slot * n_scales() * kScaleBytes;
  }

  constexpr bool operator==(const KvLayer&) const = default;

 private:
  static constexpr std::uint32_t kScaleBytes = 2;
};

/// The groups of layers that read a window of the latest positions. A text keeps no block of them
/// that no later row reads.
struct KvWindow {
  std::uint32_t n_groups = 0;   ///< 0: every layer reads all positions.
  std::uint32_t positions = 0;  ///< What a row reads, its own position included.

  /// The first block that a row at `position`, or any later row, reads.
  constexpr std::uint32_t first_block(std::uint32_t position) const {
    if (n_groups == 0 || position < positions) return 0;
    return (position + 1 - positions) / KvLayer::kBlockTokens;
  }
  /// The blocks of a group that a text reserves from that of its next position on, for a step of
  /// `step_rows` rows.
  static constexpr std::uint32_t blocks_ahead(std::uint32_t step_rows) {
    return (step_rows + KvLayer::kBlockTokens - 1) / KvLayer::kBlockTokens + 1;
  }
  /// The most blocks of one group that a text holds.
  constexpr std::uint32_t most_blocks(std::uint32_t step_rows) const {
    return (positions + KvLayer::kBlockTokens - 2) / KvLayer::kBlockTokens +
           blocks_ahead(step_rows);
  }

  constexpr bool operator==(const KvWindow&) const = default;
};

/// The blocks of a model. Every block has the same size and holds 16 positions of the layers of one
/// *group*, one layer behind the other. A text has a block table for each group. Group 0 has the
/// layers that read all positions, and the groups after it those with a window.
class KvLayout {
 public:
  static constexpr std::uint32_t kBlockTokens = KvLayer::kBlockTokens;
  static constexpr std::uint32_t kMaxGroups = 16;

  /// Blocks of these layers, whose offsets are computed here. `window` is what the groups after
  /// the first one read. A block has at least `min_block_bytes`, because blocks of the same pool
  /// may also store something else.
  explicit KvLayout(std::vector<KvLayer> layers, std::uint64_t min_block_bytes = 0,
                    std::uint32_t window = 0)
      : layers_(std::move(layers)) {
    std::array<std::uint64_t, kMaxGroups> ends{};
    for (KvLayer& layer : layers_) {
      layer.offset_bytes = ends[layer.group];
      ends[layer.group] += layer.size_bytes();
      window_.n_groups = std::max(window_.n_groups, layer.group);
    }
    if (window_.n_groups > 0) window_.positions = window;
    size_bytes_ = std::max(min_block_bytes, *std::max_element(ends.begin(), ends.end()));
  }
  /// Blocks of `n_layers` layers of the same shape.
  KvLayout(std::uint32_t n_layers, const KvLayer& shape)
      : KvLayout(std::vector<KvLayer>(n_layers, shape)) {}

  const KvLayer& layer(std::uint32_t index) const { return layers_[index]; }
  const std::vector<KvLayer>& layers() const { return layers_; }
  std::uint64_t block_size_bytes() const { return size_bytes_; }
  const KvWindow& window() const { return window_; }
  std::uint32_t n_groups() const { return 1 + window_.n_groups; }

 private:
  std::vector<KvLayer> layers_;
  std::uint64_t size_bytes_ = 0;
  KvWindow window_;
};

}  // namespace leasehold
