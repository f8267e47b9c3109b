/// The layers of a model that attend to a window of the latest positions.
#pragma once

#include <cstdint>
#include <vector>

#include "common/result.hpp"

namespace leasehold {

class ArchitectureKeys;
struct Architecture;

struct WindowConfig {
  std::uint32_t width = 0;            ///< Positions that such a layer reads, its own included.
  std::vector<bool> has_window = {};  ///< [n_layers], or empty: no layer has a window.
  bool rotates_others = true;         ///< Layers without a window are rotated.

  /// The window of a layer, as AttentionArgs::window.
  std::uint32_t of(std::uint32_t layer) const { return limits(layer) ? width : 0; }
  bool limits(std::uint32_t layer) const { return !has_window.empty() && has_window[layer]; }

  bool operator==(const WindowConfig&) const = default;
};

/// A file has `n_blocks`: the layers, and those that only propose tokens.
/// Errors: FileCorrupt for a pattern that does not fit the blocks.
Result<WindowConfig> read_windows(const ArchitectureKeys& keys, const Architecture& architecture,
                                  std::uint32_t n_layers, std::uint32_t n_blocks);

}  // namespace leasehold
