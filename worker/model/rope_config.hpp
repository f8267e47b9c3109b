/// How a model rotates its queries and keys by their position.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "kernels/op_args.hpp"

namespace leasehold {

class ArchitectureKeys;
class GgufFile;

/// The tensor whose numbers divide the frequencies.
inline constexpr std::string_view kRopeFreqFactors = "rope_freqs.weight";

/// What stretches the positions a model was trained for.
enum class RopeScaling : std::uint8_t {
  None,
  Linear,  ///< Positions are divided by `factor`.
  Yarn,    ///< See YarnScaling (kernels/numerics/rope.hpp).
};

struct RopeConfig {
  std::uint32_t dim;  ///< Even, at most head_dim.
  float base;
  RopeStyle style;
  RopeScaling scaling = RopeScaling::None;
  float factor = 1.0f;                   ///< Of the scaling; above 1.
  std::uint32_t original_context = 0;    ///< Of Yarn: positions before they were stretched.
  std::vector<float> freq_factors = {};  ///< rope_freqs.weight: one for each pair, or none at all.

  bool operator==(const RopeConfig&) const = default;
};

struct RopeMetadata {
  const GgufFile& file;
  const ArchitectureKeys& keys;
  std::uint32_t head_dim;
  std::uint32_t n_context;
  RopeStyle style;
};

/// Errors: FileCorrupt; UnsupportedModel naming the key.
Result<RopeConfig> read_rope(const RopeMetadata& from);

}  // namespace leasehold
