/// Decides on which NUMA node each byte of a weights region lies.
///
/// Each matrix is divided into one part per node, in proportion to the node's threads, because the
/// tiles of a matmul are divided in the same way, in the order of the rows
/// (kernels/cpu/node_tiles.hpp). The stacked matrices of experts are divided as one matrix: their
/// tiles are those of the experts in use, in the same order.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "common/machine/node_shares.hpp"
#include "ipc/region/node_memory.hpp"
#include "kernels/model/weights_layout.hpp"

namespace leasehold {

/// Returns ascending ranges of whole pages that cover the region; adjacent ranges are on different
/// nodes. A page is placed on the node whose part contains the page's middle byte. `ids`: the
/// system's numbers of the nodes. Pure.
std::vector<NodeRange> node_ranges(const WeightsLayout& layout, const NodeShares& shares,
                                   std::span<const std::uint32_t> ids, std::uint64_t page_bytes);

/// Places the memory of a region that has no pages yet. Failures are not reported to the caller.
using PlaceWeights = std::function<void(const UniqueFd& memory, const WeightsLayout& layout)>;

}  // namespace leasehold
