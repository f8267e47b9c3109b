#include "kernels/cpu/amx/int8.hpp"

#include "kernels/cpu/amx/dot_groups.hpp"
#include "kernels/cpu/avx512/int8.hpp"

namespace leasehold::amx {

void dot_groups_int8(const Int8Tile& tile) {
  if (tile.n_rows < kLeastTileRows) return avx512::dot_groups_int8(tile);
  dot_groups<HardwareTiles>(tile);
}

void end_int8_unit() {
  release_tiles<HardwareTiles>();
}

}  // namespace leasehold::amx
