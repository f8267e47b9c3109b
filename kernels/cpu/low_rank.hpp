/// The products of adapters on the CPU backend: one launch for A·x of all rows, one for B·h.
#pragma once

#include <array>
#include <optional>

#include "kernels/cpu/cpu_resources.hpp"
#include "kernels/low_rank_groups.hpp"

namespace leasehold {

class LowRankProducts {
 public:
  /// The resources outlive it.
  explicit LowRankProducts(CpuResources& cpu) : cpu_(cpu), groups_(cpu.limits.max_rows) {}

  LaunchStatus run(const LaunchContext& context, const LowRankArgs& args);

 private:
  using Group = LowRankGroups::Group;

  /// Tiles of one group, and in B·h of one product.
  struct Part {
    const Group* group;
    std::uint32_t product;
    std::uint32_t first_tile;
    MatmulTiles tiles;
  };
  struct TileOfB;
  struct Tile {
    const Part& part;
    std::uint32_t index;  ///< Among the tiles of the part.

    Span32 outputs() const { return part.tiles.outputs(index); }
    /// The rows that the tile covers.
    std::span<const std::uint32_t> rows() const {
      const Span32 batch = part.tiles.batch(index);
      return part.group->rows.subspan(batch.begin, batch.end - batch.begin);
    }
  };
  /// The live rows of a tile, a few at a time.
  template <std::uint32_t kMost, class Use>
  static void each_live(const LaunchPermit& permit, const LaunchContext& context,
                        std::span<const std::uint32_t> rows, Use&& use);

  /// `outputs` rows of `macs_each` weights times the rows of the group.
  struct Work {
    const Group* group;
    std::uint32_t product;
    std::uint32_t outputs;
    std::uint32_t macs_each;
    std::uint64_t macs_to_read;  ///< Per weight.
    std::uint32_t outputs_at_once;

    std::uint64_t macs() const;
  };
  void add_part(const Work& work, std::uint64_t tile_macs);
  Tile tile_of(std::uint32_t tile) const;
  /// The tile that a thread takes after this one, if there is one and its first row is live.
  std::optional<Tile> tile_after(const LaunchPermit& permit, const LaunchContext& context,
                                 std::uint32_t tile) const;
  /// Cuts the works into tiles and runs `use(permit, tile, next tile)`.
  template <class Use>
  LaunchStatus each_tile(const LaunchContext& context, LaunchSite site, std::span<const Work> works,
                         Use&& use);
  LaunchStatus reduce(const LaunchContext& context, const LowRankArgs& args,
                      std::span<const Group> groups);
  LaunchStatus expand(const LaunchContext& context, const LowRankArgs& args,
                      std::span<const Group> groups);
  void reduce_tile(const LaunchPermit& permit, const LaunchContext& context,
                   const LowRankArgs& args, const Tile& tile,
                   const std::optional<Tile>& next) const;
  void expand_tile(const LaunchPermit& permit, const LaunchContext& context,
                   const LowRankArgs& args, const Tile& tile,
                   const std::optional<Tile>& next) const;

  static constexpr std::size_t kMaxParts = kMaxStepSequences * LowRankArgs::kMaxProducts;

  CpuResources& cpu_;
  LowRankGroups groups_;               // of the running operator
  std::array<Part, kMaxParts> parts_;  // of the running launch, by their tiles
  std::uint32_t n_parts_ = 0;
  std::uint32_t n_tiles_ = 0;
};

}  // namespace leasehold
