/// The layers of a model that keep a recurrent state instead of keys and values.
#pragma once

#include <cstdint>

#include "common/result.hpp"

namespace leasehold {

class ArchitectureKeys;
struct Architecture;
struct ModelConfig;

/// How a layer mixes the positions of a sequence.
enum class Mixer : std::uint8_t {
  Attention,
  DeltaNet,          ///< Gated delta rule (Yang et al. 2025).
  ShortConvolution,  ///< A gated causal convolution (LFM2).
  Mamba2,            ///< State space duality (Dao and Gu 2024).
  None,              ///< The layer has a feed-forward only.
};
constexpr bool has_state(Mixer mixer) {
  return mixer != Mixer::Attention && mixer != Mixer::None;
}

/// The shape of the layers with a recurrent state, the same in all of them. In a delta net, groups
/// are the heads of keys and queries, and heads those of values.
struct RecurrentConfig {
  std::uint32_t n_taps = 0;        ///< Of the causal convolution, the current position included.
  std::uint32_t n_groups = 0;      ///< Divides n_heads.
  std::uint32_t n_heads = 0;       ///< 0: the layers have a convolution only.
  std::uint32_t key_dim = 0;       ///< Elements of a key, or of B and C.
  std::uint32_t head_dim = 0;      ///< Elements of a value.
  std::uint32_t channels = 0;      ///< Of the convolution.
  bool alternates_groups = false;  ///< See RecurrenceArgs.

  /// Values that the layer projects to its output.
  std::uint32_t n_values() const { return n_heads > 0 ? n_heads * head_dim : channels; }

  bool operator==(const RecurrentConfig&) const = default;
};

/// Chooses the mixer of each layer and reads the shape of those with a state. Removes the kv heads
/// of layers without attention. Preconditions: the kv heads and feed-forwards of `config.layers`
/// are read.
/// Errors: FileCorrupt for a list that does not fit the layers and for a shape that does not
/// divide; UnsupportedModel for a model without attention, and for numbers beyond the limits.
Result<void> read_mixers(const ArchitectureKeys& keys, const Architecture& architecture,
                         ModelConfig& config);

}  // namespace leasehold
