/// Asks the system to make pages of a memory object on given nodes of the machine's memory.
///
/// The preference is a property of the object: it holds for pages that any process makes later, and
/// does not move pages that are there. When a node is full, the system takes pages of another one.
/// Source: mbind(2), MPOL_PREFERRED; shared policies in the kernel's
/// Documentation/admin-guide/mm/numa_memory_policy.rst.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "common/unique_fd.hpp"
#include "ipc/region/mapping.hpp"

namespace leasehold {

/// Bytes [begin_bytes, end_bytes) of an object.
struct NodeRange {
  std::uint64_t begin_bytes = 0;  ///< A multiple of the page that placements use.
  std::uint64_t end_bytes = 0;    ///< Likewise, or the object's end.
  std::uint32_t node = 0;         ///< The system's number.

  bool operator==(const NodeRange&) const = default;
};

/// The page that a placement of an object of this size is cut into: a huge one if it can have any.
std::uint64_t placement_page_bytes(std::uint64_t size_bytes);

/// Prefers a node for the pages of a shared mapping. Errors: SystemError.
using PreferNode = std::function<Result<void>(std::span<std::byte> pages, std::uint32_t node)>;
Result<void> prefer_node(std::span<std::byte> pages, std::uint32_t node);

/// Prefers a node for each range, through a mapping of its own that makes no page. Stops at the
/// first failure. Errors: those of Mapping::map and of `prefer`.
Result<void> prefer_nodes(const UniqueFd& memory, std::uint64_t size_bytes,
                          std::span<const NodeRange> ranges,
                          const PreferNode& prefer = prefer_node);

}  // namespace leasehold
