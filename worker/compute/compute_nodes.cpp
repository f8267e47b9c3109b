#include "worker/compute/compute_nodes.hpp"

#include <spdlog/spdlog.h>

#include <mutex>

namespace leasehold {

struct ComputeNodes::Shared {
  std::vector<NodeThreads> nodes;  // at least two
  NodeCalls calls;
  std::once_flag binding_failed;
  std::once_flag placement_failed;

  std::vector<std::uint32_t> threads() const {
    std::vector<std::uint32_t> each;
    for (const NodeThreads& node : nodes) each.push_back(node.threads);
    return each;
  }
  std::vector<std::uint32_t> ids() const {
    std::vector<std::uint32_t> each;
    for (const NodeThreads& node : nodes) each.push_back(node.id);
    return each;
  }
  void bind(pthread_t thread, std::uint32_t node) {
    const Result<void> bound = calls.bind(thread, nodes[node].cpus);
    if (bound) return;
    std::call_once(binding_failed, [&] {
      spdlog::warn("compute threads are not bound to their nodes of memory node={} reason=\"{}\"",
                   nodes[node].id, bound.error().detail);
    });
  }
  void place(const UniqueFd& memory, const WeightsLayout& layout) {
    const auto ranges =
        node_ranges(layout, NodeShares(threads()), ids(), placement_page_bytes(layout.size_bytes));
    const Result<void> placed = prefer_nodes(memory, layout.size_bytes, ranges, calls.prefer);
    if (placed) return;
    std::call_once(placement_failed, [&] {
      spdlog::warn(
          "weights are not placed on the nodes of memory that compute with them "
          "reason=\"{}\"",
          placed.error().detail);
    });
  }
};

ComputeNodes::ComputeNodes(const NumaNodes& found, std::uint32_t threads, NodeCalls calls) {
  if (!found.problem.empty()) {
    spdlog::warn(
        "this machine is used as one node of memory, because its nodes cannot be read; --numa off "
        "does not read them reason=\"{}\"",
        found.problem);
  }
  std::vector<NodeThreads> nodes = spread_threads(found.nodes, threads);
  if (nodes.empty()) return;
  shared_ = std::make_shared<Shared>();
  shared_->nodes = std::move(nodes);
  shared_->calls = std::move(calls);
}

std::size_t ComputeNodes::count() const {
  return shared_ == nullptr ? 1 : shared_->nodes.size();
}

PoolNodes ComputeNodes::pool() const {
  if (shared_ == nullptr) return {};
  return {.threads = shared_->threads(),
          .bind = [shared = shared_](std::thread::native_handle_type thread, std::uint32_t node) {
            shared->bind(thread, node);
          }};
}

CpuSet ComputeNodes::engine_cpus() const {
  return shared_ == nullptr ? CpuSet() : shared_->nodes.front().cpus;
}

PlaceWeights ComputeNodes::weights_placer() const {
  if (shared_ == nullptr) return {};
  return [shared = shared_](const UniqueFd& memory, const WeightsLayout& layout) {
    shared->place(memory, layout);
  };
}

ComputeNodes nodes_for(const WorkerOptions& options, NodeCalls calls) {
  if (!options.spread_over_nodes || options.backend == BackendChoice::Reference) return {};
  const CpuSet& chosen = options.compute_cpus;
  const NumaNodes found = calls.read(chosen.empty() ? CpuSet::of_this_thread() : chosen);
  return {found, options.threads, std::move(calls)};
}

}  // namespace leasehold
