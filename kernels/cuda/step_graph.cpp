#include "kernels/cuda/step_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace leasehold::cuda {
namespace {

// Attention's grid grows with the positions; blocks beyond a row's end return at once.
constexpr std::uint32_t kMinPositions = 256;

/// Adds nodes to a graph; each depends on the previous one.
class Chain {
 public:
  Chain(const Context& context, KernelLibrary& library, CUgraph graph)
      : context_(&context), library_(&library), graph_(graph) {}

  Result<void> add(const KernelLaunch& launch) {
    // The driver copies the parameters before it returns.
    KernelLaunch copy = launch;
    void* params[] = {copy.params.data()};
    CUDA_KERNEL_NODE_PARAMS node{};
    node.func = TRY(library_->find(launch.kernel, launch.shared_bytes));
    node.gridDimX = launch.grid.x;
    node.gridDimY = launch.grid.y;
    node.gridDimZ = launch.grid.z;
    node.blockDimX = launch.block_threads;
    node.blockDimY = 1;
    node.blockDimZ = 1;
    node.sharedMemBytes = launch.shared_bytes;
    node.kernelParams = params;
    CUgraphNode added = nullptr;
    TRY(check(context_->driver(),
              context_->driver().cuGraphAddKernelNode(&added, graph_, before(), n_before(), &node),
              fmt::format("adding {} to a graph", launch.kernel)));
    last_ = added;
    return {};
  }

  Result<void> add_all(std::span<const KernelLaunch> launches) {
    for (const KernelLaunch& launch : launches) TRY(add(launch));
    return {};
  }

#if LEASEHOLD_CUDA_CONDITIONAL_NODES
  Result<CUgraphConditionalHandle> new_condition() const {
    CUgraphConditionalHandle handle = 0;
    TRY(check(context_->driver(),
              context_->driver().cuGraphConditionalHandleCreate(&handle, graph_, context_->handle(),
                                                                0, CU_GRAPH_COND_ASSIGN_DEFAULT),
              "creating a graph condition"));
    return handle;
  }

  /// Adds a node whose body runs only if `condition` is set. Returns the body.
  Result<CUgraph> add_if(CUgraphConditionalHandle condition) {
    CUgraphNodeParams node{};
    node.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    node.conditional.handle = condition;
    node.conditional.type = CU_GRAPH_COND_TYPE_IF;
    node.conditional.size = 1;
    node.conditional.ctx = context_->handle();
    CUgraphNode added = nullptr;
    TRY(check(context_->driver(), add_node(added, node), "adding a conditional node"));
    last_ = added;
    return node.conditional.phGraph_out[0];
  }
#endif

 private:
#if LEASEHOLD_CUDA_CONDITIONAL_NODES
  CUresult add_node(CUgraphNode& added, CUgraphNodeParams& node) const {
#if CUDA_VERSION >= 13000
    return context_->driver().cuGraphAddNode(&added, graph_, before(), nullptr, n_before(), &node);
#else
    return context_->driver().cuGraphAddNode(&added, graph_, before(), n_before(), &node);
#endif
  }
#endif
  const CUgraphNode* before() const { return last_ == nullptr ? nullptr : &last_; }
  std::size_t n_before() const { return last_ == nullptr ? 0 : 1; }

  const Context* context_;
  KernelLibrary* library_;
  CUgraph graph_;
  CUgraphNode last_ = nullptr;
};

Result<void> add_segment(Chain& chain, [[maybe_unused]] const Context& context,
                         [[maybe_unused]] KernelLibrary& library, const StepGraph::Plan& plan,
                         std::uint32_t index) {
  const GraphSegment& segment = plan.segments[index];
  if (!plan.gate) return chain.add_all(segment);
#if LEASEHOLD_CUDA_CONDITIONAL_NODES
  if (library.has_conditional_gate()) {
    const CUgraphConditionalHandle condition = TRY(chain.new_condition());
    TRY(chain.add(plan.gate(index, condition)));
    Chain body(context, library, TRY(chain.add_if(condition)));
    return body.add_all(segment);
  }
#endif
  TRY(chain.add(plan.gate(index, 0)));
  return chain.add_all(segment);
}

}  // namespace

GraphShape GraphShape::bucket_for(std::uint32_t n_rows, std::uint32_t longest) {
  return {.n_rows = std::bit_ceil(n_rows),
          .longest = std::bit_ceil(std::max(longest, kMinPositions))};
}

Result<StepGraph> StepGraph::make(const Context& context, KernelLibrary& library,
                                  const Plan& plan) {
  const Driver& driver = context.driver();
  StepGraph graph;
  graph.bound_to_.assign(plan.bound_to.begin(), plan.bound_to.end());
  CUgraph created = nullptr;
  TRY(check(driver, driver.cuGraphCreate(&created, 0), "creating a graph"));
  graph.graph_ = {context, created};
  Chain chain(context, library, created);
  for (std::uint32_t i = 0; i < plan.segments.size(); ++i)
    TRY(add_segment(chain, context, library, plan, i));
  CUgraphExec exec = nullptr;
  TRY(check(driver, driver.cuGraphInstantiateWithFlags(&exec, created, 0),
            "instantiating a graph"));
  graph.exec_ = {context, exec};
  return graph;
}

Result<void> StepGraph::check_bound(std::span<const LeaseDependency> leases) const {
  const auto is_same = [](const LeaseDependency& a, const LeaseDependency& b) {
    return a.slot == b.slot && a.granted == b.granted;
  };
  bool same = leases.size() == bound_to_.size();
  for (std::size_t i = 0; same && i < leases.size(); ++i) same = is_same(leases[i], bound_to_[i]);
  if (same) return {};
  return fail(Errc::StaleGraph,
              "a recorded step uses weights of leases that ended; record it again");
}

}  // namespace leasehold::cuda
