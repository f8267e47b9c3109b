/// On which node of the machine's memory each byte of a weights region lies.
///
/// Each matrix is cut into one part per node, in proportion to its threads, because the tiles of a
/// matmul are cut so and follow the order of the rows (kernels/cpu/node_tiles.hpp). The stacked
/// matrices of experts are cut as one: their tiles are those of the experts in use, in the same
/// order.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "common/node_shares.hpp"
#include "ipc/region/node_memory.hpp"
#include "worker/model/weights_layout.hpp"

namespace leasehold {

/// Ranges of whole pages that cover the region, ascending, neighbours on different nodes. A page
/// lies on the node whose part has the byte in its middle. `ids` are the system's numbers of the
/// nodes. Pure.
std::vector<NodeRange> node_ranges(const WeightsLayout& layout, const NodeShares& shares,
                                   std::span<const std::uint32_t> ids, std::uint64_t page_bytes);

/// Places the memory of a region that has no pages yet; it cannot fail.
using PlaceWeights = std::function<void(const UniqueFd& memory, const WeightsLayout& layout)>;

}  // namespace leasehold
