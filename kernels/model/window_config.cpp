#include "kernels/model/window_config.hpp"

#include <utility>

#include "kernels/model/architecture.hpp"
#include "kernels/model/architecture_keys.hpp"

namespace leasehold {
namespace {

constexpr const char* kWidth = "attention.sliding_window";
/// The distance of layers without a window, or one boolean per layer: true with a window.
constexpr const char* kPattern = "attention.sliding_window_pattern";

Result<std::vector<bool>> read_pattern(const ArchitectureKeys& keys, std::uint32_t full_every,
                                       std::uint32_t n_layers, std::uint32_t n_blocks) {
  if (keys.is_array(kPattern)) {
    std::vector<bool> pattern = TRY(keys.get<std::vector<bool>>(kPattern));
    if (pattern.size() != n_blocks)
      return keys.corrupt("{} has {} elements for {} layers", keys.key(kPattern), pattern.size(),
                          n_blocks);
    pattern.resize(n_layers);
    return pattern;
  }
  const auto every = TRY(keys.count_or(kPattern, kMaxContext, full_every));
  std::vector<bool> pattern(n_layers);
  for (std::uint32_t layer = 0; layer < n_layers; ++layer)
    pattern[layer] = (layer + 1) % every != 0;
  return pattern;
}

}  // namespace

Result<WindowConfig> read_windows(const ArchitectureKeys& keys, const Architecture& architecture,
                                  std::uint32_t n_layers, std::uint32_t n_blocks) {
  const WindowRule& rule = architecture.windows;
  if (rule.full_every == 0) return WindowConfig{};
  if (rule.needs_pattern && !keys.has(kPattern))
    return keys.corrupt("has no {}; convert the model again", keys.key(kPattern));
  if (rule.needs_width) TRY(keys.count(kWidth, kMaxContext));
  const auto width = TRY(keys.get_or<std::uint32_t>(kWidth, rule.width));
  if (width == 0) return WindowConfig{};
  std::vector<bool> pattern = TRY(read_pattern(keys, rule.full_every, n_layers, n_blocks));
  return WindowConfig{
      .width = width, .has_window = std::move(pattern), .rotates_others = rule.rotates_others};
}

}  // namespace leasehold
