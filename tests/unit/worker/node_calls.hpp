/// Calls for nodes of memory that are recorded instead of made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "worker/compute/compute_nodes.hpp"

namespace leasehold::testing {

inline CpuSet cpus(const std::string& list) {
  return CpuSet::parse(list).value();
}

inline bool are_equal(const CpuSet& a, const CpuSet& b) {
  return a.contains(b) && b.contains(a);
}

/// Four cores on node 0, two on node 5.
inline NumaNodes two_nodes() {
  return {.nodes = {{0, cpus("0-3")}, {5, cpus("4-5")}}, .problem = {}};
}

/// Outlives what uses its calls.
struct NodeCallRecord {
  std::vector<CpuSet> asked;         ///< Usable cores, once for each reading of the nodes.
  std::vector<std::uint32_t> bound;  ///< Numbers of cores.
  std::vector<std::pair<std::size_t, std::uint32_t>> preferred;
  Result<void> answer;
  /// Binding a thread ends as starting one does when the system has no more.
  bool are_threads_scarce = false;
  /// What is read; cores that the machine of the test lacks are fine.
  std::function<NumaNodes(const CpuSet& usable)> machine = [](const CpuSet&) {
    return two_nodes();
  };

  NodeCalls as_calls() {
    return {.read =
                [this](const CpuSet& usable) {
                  asked.push_back(usable);
                  return machine(usable);
                },
            .bind =
                [this](pthread_t, const CpuSet& to) {
                  if (are_threads_scarce)
                    throw std::system_error(
                        std::make_error_code(std::errc::resource_unavailable_try_again));
                  bound.push_back(to.count());
                  return answer;
                },
            .prefer =
                [this](std::span<std::byte> pages, std::uint32_t node) {
                  preferred.emplace_back(pages.size(), node);
                  return answer;
                }};
  }
};

}  // namespace leasehold::testing
