/// The rotary position embedding of a model.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "kernels/numerics/rope.hpp"

namespace leasehold {

class ArchitectureKeys;
class GgufFile;
struct Architecture;
struct WindowRule;

/// Tensors whose values divide the frequencies. A file has the first one, or both of the others
/// (longrope, Ding et al. 2024): one for contexts longer than the original one, one for others.
inline constexpr std::string_view kRopeFreqFactors = "rope_freqs.weight";
inline constexpr std::string_view kLongRopeFactors = "rope_factors_long.weight";
inline constexpr std::string_view kShortRopeFactors = "rope_factors_short.weight";

/// How positions beyond the training context are scaled.
enum class RopeScaling : std::uint8_t {
  None,
  Linear,  ///< Positions are divided by `factor`.
  Yarn,    ///< See YarnScaling (kernels/numerics/rope.hpp).
};

struct RopeConfig {
  std::uint32_t dim;  ///< Even, at most the width of a head.
  float base;
  RopeStyle style;
  RopeScaling scaling = RopeScaling::None;
  float factor = 1.0f;     ///< Scaling factor, above 1.
  YarnScaling yarn = {};   ///< Used by Yarn only; its factor is `factor`.
  float magnitude = 1.0f;  ///< Multiplies sines and cosines, after that of yarn.
  QueryTemperature query_temperature = {};
  std::vector<float> freq_factors = {};  ///< The divisors of the frequencies, or empty.
  /// Longrope: the divisors of contexts of at most `short_context` positions; otherwise empty.
  std::vector<float> short_factors = {};
  std::uint32_t short_context = 0;
  /// Layers skip_every - 1, 2 · skip_every - 1, … are not rotated; 0: all are.
  std::uint32_t skip_every = 0;

  bool uses_short_factors(std::uint32_t n_context) const { return n_context <= short_context; }
  bool rotates(std::uint32_t layer) const {
    return skip_every == 0 || (layer + 1) % skip_every != 0;
  }

  bool operator==(const RopeConfig&) const = default;
};

/// The angles of all positions of a context that long.
RopeAngles rope_angles(const RopeConfig& config, std::uint32_t n_context);

/// Errors: FileCorrupt; UnsupportedModel naming the key.
Result<RopeConfig> read_rope(const GgufFile& file, const ArchitectureKeys& keys,
                             std::uint32_t head_dim, std::uint32_t n_context,
                             const Architecture& architecture);

/// The rotation of layers with a window, whose heads are `head_dim` wide. What neither the file nor
/// the rule says is as in `others`.
Result<RopeConfig> read_window_rope(const ArchitectureKeys& keys, const RopeConfig& others,
                                    std::uint32_t head_dim, const WindowRule& rule);

}  // namespace leasehold
