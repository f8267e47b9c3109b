/// Which tensors a model needs, and where each lies in a weights region.
///
/// A region holds all weights of a model, or a part of them (weights_plan.hpp), in an order that
/// depends on the model's config only. Each tensor starts on a cache line and keeps the bytes it
/// has in the file, so a loader copies them (GgufFile::read) and any worker with the same layout
/// finds them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/hex.hpp"
#include "common/result.hpp"
#include "worker/gguf/gguf.hpp"
#include "worker/model/config.hpp"

namespace leasehold {

/// Grows whenever bytes would lie elsewhere or otherwise than before. Part of the digest.
inline constexpr std::uint32_t kWeightsLayoutVersion = 1;
inline constexpr std::uint64_t kWeightAlignmentBytes = 64;

struct WeightTensor {
  std::string name;  ///< As in the file: "blk.0.attn_q.weight".
  TensorType type;
  std::uint32_t rows;     ///< Outputs of a matrix; 1 for a vector.
  std::uint32_t columns;  ///< Elements of a row.
  std::uint64_t region_offset_bytes;
  std::uint64_t size_bytes;

  bool operator==(const WeightTensor&) const = default;
};

/// SHA-256.
using LayoutDigest = std::array<std::uint8_t, 32>;

struct WeightsLayout {
  std::vector<WeightTensor>
      weights;               ///< token_embd, layer by layer, output_norm, output: ascending.
  std::uint64_t size_bytes;  ///< Of the region; a multiple of kWeightAlignmentBytes.

  /// Over the version and every weight's name, type, shape and offset. Two layouts with one digest
  /// place bytes alike; it says nothing about the bytes.
  LayoutDigest digest;

  /// Null when the model has no such weight. A search: look up once, not per step.
  const WeightTensor* find(std::string_view name) const;
};

/// Gives every weight its place, in this order; the offsets they came with do not matter.
WeightsLayout assign_weight_offsets(std::vector<WeightTensor> weights);

/// `config` is what read_config gave for this file. All weights in one region.
/// Errors: MissingWeight naming the tensor; FileCorrupt for one whose shape contradicts the config;
/// UnsupportedModel for a vector that is not F32, and for a tensor this build would not use: a
/// model with more parts than we compute would run and be wrong.
Result<WeightsLayout> make_weights_layout(const GgufFile& file, const ModelConfig& config);

}  // namespace leasehold
