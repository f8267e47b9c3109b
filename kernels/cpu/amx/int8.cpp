#include "kernels/cpu/amx/int8.hpp"

#include "kernels/cpu/amx/dot_groups.hpp"

namespace leasehold::amx {

void dot_groups_int8(const Int8Tile& tile) {
  dot_groups_or_avx512<HardwareTiles>(tile);
}

void end_int8_unit() {
  release_tiles<HardwareTiles>();
}

}  // namespace leasehold::amx
