/// The rotary position embedding of a model.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "kernels/op_args.hpp"

namespace leasehold {

class ArchitectureKeys;
class GgufFile;

/// The tensor whose values divide the frequencies.
inline constexpr std::string_view kRopeFreqFactors = "rope_freqs.weight";

/// How positions beyond the training context are scaled.
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
  float factor = 1.0f;                   ///< Scaling factor, above 1.
  std::uint32_t original_context = 0;    ///< For Yarn: the context before scaling.
  std::vector<float> freq_factors = {};  ///< rope_freqs.weight: one per pair, or empty.

  bool operator==(const RopeConfig&) const = default;
};

/// Errors: FileCorrupt; UnsupportedModel naming the key.
Result<RopeConfig> read_rope(const GgufFile& file, const ArchitectureKeys& keys,
                             std::uint32_t head_dim, std::uint32_t n_context, RopeStyle style);

}  // namespace leasehold
