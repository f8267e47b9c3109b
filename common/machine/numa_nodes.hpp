/// The nodes of this machine's memory, and how threads are spread over them.
///
/// A node is memory with the cores that reach it fastest. Almost every machine has one.
/// Source: the kernel's Documentation/ABI/stable/sysfs-devices-node.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/machine/cpu_set.hpp"

namespace leasehold {

struct NumaNode {
  std::uint32_t id = 0;  ///< The system's number.
  CpuSet cpus;           ///< Usable cores; at least one.
};

struct NumaNodes {
  std::vector<NumaNode> nodes;  ///< Fewer than two: the machine is used as one node.
  std::string problem;  ///< Why the nodes could not be read, and `nodes` is empty; else empty.
};

inline constexpr const char* kNumaRoot = "/sys/devices/system/node";

/// The nodes below `root` that have memory and usable cores. Cores of a node without memory count
/// for the nearest node that has some. `problem` is empty if the kernel lists no nodes or `usable`
/// is empty.
NumaNodes read_numa_nodes(const CpuSet& usable, const std::string& root = kNumaRoot);

/// Threads that compute on one node.
struct NodeThreads {
  std::uint32_t id = 0;  ///< The system's number of the node.
  CpuSet cpus;
  std::uint32_t threads = 0;  ///< At least one.
};

/// Spreads threads in proportion to usable cores; remainders go to the largest fractions, then to
/// the first nodes. Nodes without threads are left out. Empty if fewer than two nodes are left:
/// the caller then spreads nothing. Pure.
std::vector<NodeThreads> spread_threads(std::span<const NumaNode> nodes, std::uint32_t threads);

}  // namespace leasehold
