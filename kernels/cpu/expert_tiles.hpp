/// The tiles of an expert matmul, which is one matmul per expert over that expert's items: the
/// tiles of these matmuls, expert after expert. An expert without items has no tiles.
///
/// Threads: `begin` from the engine thread; `at` from any thread of the launch.
#pragma once

#include "kernels/expert_groups.hpp"
#include "kernels/launch_rules.hpp"

namespace leasehold {

class ExpertTiles {
 public:
  explicit ExpertTiles(const BackendLimits& limits)
      : groups_(limits.n_experts, max_matmul_inputs(limits)), first_tile_(limits.n_experts + 1) {}

  /// Sorts the items by expert and returns the number of tiles. An expert with n > 0 items has
  /// `count(n)` tiles.
  template <class Count>
  std::uint32_t begin(const ExpertMatmulArgs& args, Count&& count) {
    items_ = groups_.sort(args);
    end_ = first_tile_.begin() + args.n_experts + 1;
    first_tile_[0] = 0;
    for (std::uint32_t e = 0; e < args.n_experts; ++e) {
      const std::uint32_t n = items_.first[e + 1] - items_.first[e];
      first_tile_[e + 1] = first_tile_[e] + (n > 0 ? count(n) : 0);
    }
    return first_tile_[args.n_experts];
  }

  /// A tile of the expert's own matmul.
  struct Tile {
    std::uint32_t expert;
    std::uint32_t index;  ///< Among the expert's tiles.
    std::span<const std::uint32_t> items;

    std::uint32_t n_items() const { return static_cast<std::uint32_t>(items.size()); }
  };
  Tile at(std::uint32_t tile) const {
    const auto expert = static_cast<std::uint32_t>(
        std::upper_bound(first_tile_.begin(), end_, tile) - first_tile_.begin() - 1);
    const std::uint32_t first = items_.first[expert];
    return {.expert = expert,
            .index = tile - first_tile_[expert],
            .items = items_.items.subspan(first, items_.first[expert + 1] - first)};
  }

 private:
  ExpertGroups groups_;
  ExpertItems items_;                      // of the running launch
  std::vector<std::uint32_t> first_tile_;  // [n_experts + 1], of the running launch
  std::vector<std::uint32_t>::const_iterator end_;
};

}  // namespace leasehold
