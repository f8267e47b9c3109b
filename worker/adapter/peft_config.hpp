/// adapter_config.json of PEFT. Pure.
///
/// Source: LoraConfig of PEFT. A module's scale is α / r, with use_rslora α / √r. rank_pattern and
/// alpha_pattern give single modules other values: the first pattern counts that is the module's
/// name or follows a dot in it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/result.hpp"

namespace leasehold {

/// The longest file that this build reads.
inline constexpr std::uint64_t kMaxPeftConfigBytes = 1 << 20;

struct PeftConfig {
  std::uint32_t rank = 0;
  float alpha = 0.0F;
  bool divides_by_root = false;  ///< use_rslora
  std::vector<std::pair<std::string, std::uint32_t>> rank_pattern;
  std::vector<std::pair<std::string, float>> alpha_pattern;
  /// Names of the modules with matrices, such as "q_proj"; empty: any.
  std::vector<std::string> target_modules;
  std::optional<std::vector<std::uint32_t>> layers;  ///< Layers with matrices; nothing: any.

  /// `module`: "model.layers.0.self_attn.q_proj".
  std::uint32_t rank_of(std::string_view module) const;
  float scale_of(std::string_view module) const;
  bool has_target(std::string_view module) const;
  bool has_layer(std::uint32_t layer) const;
};

/// Errors: FileCorrupt for a missing or malformed value; UnsupportedModel naming the key for
/// another method than plain LoRA, and for targets outside the dense layers.
Result<PeftConfig> read_peft_config(std::string_view json, std::string_view path);

}  // namespace leasehold
