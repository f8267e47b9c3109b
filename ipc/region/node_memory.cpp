#include "ipc/region/node_memory.hpp"

#include <fmt/format.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>

#include "common/expects.hpp"

namespace leasehold {
namespace {

constexpr std::uint64_t kHugePageBytes = 2 << 20;
constexpr std::size_t kMaxNodes = 1024;  // the kernel's limit on x86
constexpr std::size_t kBits = sizeof(unsigned long) * CHAR_BIT;

}  // namespace

std::uint64_t placement_page_bytes(std::uint64_t size_bytes) {
  if (size_bytes >= kHugePageBytes) return kHugePageBytes;
  return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

Result<void> prefer_node(std::span<std::byte> pages, std::uint32_t node) {
  std::array<unsigned long, kMaxNodes / kBits> mask{};
  expects(node < kMaxNodes, "a node has a number of the system");
  mask[node / kBits] = 1UL << node % kBits;
  // The kernel reads one bit less than it is given. glibc has no function for this call.
  if (::syscall(SYS_mbind, pages.data(), pages.size(), MPOL_PREFERRED, mask.data(), kMaxNodes + 1,
                0U) == 0)
    return {};
  return fail_errno(Errc::SystemError, fmt::format("mbind to node {}", node), errno);
}

Result<void> prefer_nodes(const UniqueFd& memory, std::uint64_t size_bytes,
                          std::span<const NodeRange> ranges, const PreferNode& prefer) {
  if (ranges.empty()) return {};
  const Mapping mapping = TRY(Mapping::map(memory, size_bytes, MapAccess::ReadWrite));
  for (const NodeRange& range : ranges)
    TRY(prefer({mapping.data() + range.begin_bytes, range.end_bytes - range.begin_bytes},
               range.node));
  return {};
}

}  // namespace leasehold
