/// Asks the kernel to allocate pages of a memory object on given NUMA nodes.
///
/// The preference is a property of the object: it applies to pages that any process allocates
/// later, and does not move existing pages. If a node is full, the kernel allocates on another one.
/// Source: mbind(2), MPOL_PREFERRED; shared policies in the kernel's
/// Documentation/admin-guide/mm/numa_memory_policy.rst.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "common/machine/unique_fd.hpp"
#include "ipc/region/mapping.hpp"

namespace leasehold {

/// Bytes [begin_bytes, end_bytes) of an object.
struct NodeRange {
  std::uint64_t begin_bytes = 0;  ///< A multiple of placement_page_bytes.
  std::uint64_t end_bytes = 0;    ///< Likewise, or the object's end.
  std::uint32_t node = 0;         ///< The system's number.

  bool operator==(const NodeRange&) const = default;
};

/// The page size that ranges of an object of this size are aligned to: a huge page if the object is
/// large enough for one.
std::uint64_t placement_page_bytes(std::uint64_t size_bytes);

/// Prefers a node for the pages of a shared mapping. Errors: SystemError.
using PreferNode = std::function<Result<void>(std::span<std::byte> pages, std::uint32_t node)>;
Result<void> prefer_node(std::span<std::byte> pages, std::uint32_t node);

/// Prefers a node for each range, through a mapping of its own that allocates no pages. Stops at
/// the first failure. Errors: those of Mapping::map and of `prefer`.
Result<void> prefer_nodes(const UniqueFd& memory, std::uint64_t size_bytes,
                          std::span<const NodeRange> ranges,
                          const PreferNode& prefer = prefer_node);

}  // namespace leasehold
