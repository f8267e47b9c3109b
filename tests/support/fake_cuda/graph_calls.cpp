/// Graphs of kernels, and IF nodes whose bodies are graphs.
///
/// Nodes run one after another in an order that respects their dependencies. The value of a
/// condition belongs to its handle: a launch of the graph sets it to its default, then kernels set
/// it.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <list>
#include <memory>
#include <optional>

#include "tests/support/fake_cuda/entry.hpp"
#include "tests/support/fake_cuda/kernels.hpp"

using namespace leasehold::fake_cuda;

namespace {

struct Graph;

struct Condition {
  Graph* graph = nullptr;
  std::optional<std::uint32_t> at_launch;
  std::uint32_t value = 0;
  bool used = false;
};

struct Node {
  std::optional<LaunchPlan> launch;
  CUgraphConditionalHandle condition = 0;
  std::vector<std::shared_ptr<Graph>>
      bodies;  ///< The first runs if the condition is not zero, the second if it is.
  std::vector<CUgraph> body_handles;  ///< The array that phGraph_out points to.
  std::vector<const Node*> after;
};

struct Graph {
  std::list<Node> nodes;  ///< Each node comes after its dependencies.
  std::vector<CUgraphConditionalHandle> conditions;
};

/// An instantiated graph: a snapshot.
struct Exec {
  std::vector<Item> items;
  std::vector<CUgraphConditionalHandle> conditions;
};

struct Graphs {
  static Graphs& get() {
    static auto& all = *new Graphs;
    return all;
  }
  std::mutex mutex;
  std::map<CUgraph, std::shared_ptr<Graph>> graphs;  ///< Including bodies.
  std::map<CUgraphExec, std::shared_ptr<const Exec>> execs;
  std::map<CUgraphConditionalHandle, Condition> conditions;
  CUgraphConditionalHandle newest_condition = 0;

  Graph* find(CUgraph graph) {
    const auto at = graphs.find(graph);
    return at == graphs.end() ? nullptr : at->second.get();
  }
};

CUgraph handle_of(const std::shared_ptr<Graph>& graph) {
  return reinterpret_cast<CUgraph>(graph.get());
}

void set_condition(std::uint64_t handle, std::uint32_t value) {
  const std::scoped_lock lock(Graphs::get().mutex);
  const auto at = Graphs::get().conditions.find(handle);
  if (at != Graphs::get().conditions.end()) at->second.value = value;
}

/// What a new node depends on.
struct Edges {
  const CUgraphNode* from = nullptr;
  std::size_t count = 0;
  bool programmatic = false;
};

/// Adds the node if its dependencies are in the graph; a programmatic edge joins two kernels.
/// Precondition: the lock is held.
CUresult add_node(Graph& graph, const Edges& edges, Node node, CUgraphNode* handle) {
  for (std::size_t i = 0; i < edges.count; ++i) {
    const auto* const wanted = reinterpret_cast<const Node*>(edges.from[i]);
    const bool known =
        std::ranges::any_of(graph.nodes, [&](const Node& one) { return &one == wanted; });
    if (!known || (edges.programmatic && (!node.launch || !wanted->launch)))
      return CUDA_ERROR_INVALID_VALUE;
    node.after.push_back(wanted);
  }
  *handle = reinterpret_cast<CUgraphNode>(&graph.nodes.emplace_back(std::move(node)));
  return CUDA_SUCCESS;
}

/// Orders ready nodes newest first, as far from the order of insertion as dependencies allow, so
/// that a missing dependency shows.
std::vector<const Node*> order_of(const Graph& graph) {
  std::vector<const Node*> waiting;
  for (const Node& node : graph.nodes) waiting.push_back(&node);
  std::vector<const Node*> order;
  const auto is_ready = [&](const Node* node) {
    return std::ranges::all_of(node->after, [&](const Node* before) {
      return std::ranges::find(order, before) != order.end();
    });
  };
  while (!waiting.empty()) {
    const auto newest = std::find_if(waiting.rbegin(), waiting.rend(), is_ready);
    order.push_back(*newest);
    waiting.erase(std::next(newest).base());
  }
  return order;
}

std::vector<Item> items_of(const Graph& graph);

/// When the stream reaches the item, the body that the condition selects replaces it.
Item branch_of(const Node& node) {
  std::vector<std::vector<Item>> bodies;
  for (const auto& body : node.bodies) bodies.push_back(items_of(*body));
  auto more = [handle = node.condition, bodies = std::move(bodies)] {
    const std::scoped_lock lock(Graphs::get().mutex);
    const std::size_t taken = Graphs::get().conditions[handle].value != 0 ? 0 : 1;
    return taken < bodies.size() ? Items(bodies[taken].begin(), bodies[taken].end()) : Items{};
  };
  return {.more = std::move(more)};
}

std::vector<Item> items_of(const Graph& graph) {
  std::vector<Item> items;
  for (const Node* const node : order_of(graph))
    items.push_back(node->launch ? item_of(*node->launch) : branch_of(*node));
  return items;
}

void collect_conditions(const Graph& graph, std::vector<CUgraphConditionalHandle>& conditions) {
  conditions.insert(conditions.end(), graph.conditions.begin(), graph.conditions.end());
  for (const Node& node : graph.nodes) {
    for (const auto& body : node.bodies) collect_conditions(*body, conditions);
  }
}

void erase_conditions(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    for (const auto& body : node.bodies) {
      erase_conditions(*body);
      Graphs::get().graphs.erase(handle_of(body));
    }
  }
}

/// The items of one launch; called when the stream reaches the launch.
Items begin_launch(const Exec& exec) {
  const std::scoped_lock lock(Graphs::get().mutex);
  for (const auto handle : exec.conditions) {
    Condition& condition = Graphs::get().conditions[handle];
    if (condition.at_launch) condition.value = *condition.at_launch;
  }
  return {exec.items.begin(), exec.items.end()};
}

CUresult add_kernel(Graph& graph, const Edges& edges, const CUDA_KERNEL_NODE_PARAMS& params,
                    CUgraphNode* handle) {
  Node node;
  node.launch = plan_launch(params);
  node.launch->overlaps = edges.programmatic;
  if (node.launch->result != CUDA_SUCCESS) return node.launch->result;
  return add_node(graph, edges, std::move(node), handle);
}

CUresult add_if(Graph& graph, const Edges& edges, CUDA_CONDITIONAL_NODE_PARAMS& params,
                CUgraphNode* handle) {
  Graphs& graphs = Graphs::get();
  if (params.ctx != primary_context()) return CUDA_ERROR_INVALID_VALUE;
  const auto condition = graphs.conditions.find(params.handle);
  if (condition == graphs.conditions.end() || condition->second.used ||
      condition->second.graph != &graph)
    return CUDA_ERROR_INVALID_VALUE;
  if (params.type != CU_GRAPH_COND_TYPE_IF) return CUDA_ERROR_NOT_SUPPORTED;
  if (params.size < 1 || params.size > 2) return CUDA_ERROR_INVALID_VALUE;
  Node node;
  node.condition = params.handle;
  for (unsigned i = 0; i < params.size; ++i)
    node.body_handles.push_back(handle_of(node.bodies.emplace_back(std::make_shared<Graph>())));
  const CUresult added = add_node(graph, edges, std::move(node), handle);
  if (added != CUDA_SUCCESS) return added;
  condition->second.used = true;
  Node& kept = graph.nodes.back();
  for (const auto& body : kept.bodies) graphs.graphs[handle_of(body)] = body;
  params.phGraph_out = kept.body_handles.data();
  return CUDA_SUCCESS;
}

/// Whether all bytes that the node's type does not use are zero.
bool is_clean(const CUgraphNodeParams& params) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(&params);
  const std::size_t used = params.type == CU_GRAPH_NODE_TYPE_CONDITIONAL ? sizeof params.conditional
                                                                         : sizeof params.kernel;
  const std::size_t begin = offsetof(CUgraphNodeParams, reserved1) + used;
  const bool is_rest_zero = std::all_of(bytes + begin, bytes + sizeof params,
                                        [](std::byte byte) { return byte == std::byte{}; });
  return is_rest_zero && std::ranges::all_of(params.reserved0, [](int word) { return word == 0; });
}

#if CUDA_VERSION >= 13000
/// Edges that are all plain or all programmatic; nothing for any others.
std::optional<Edges> edges_of(const CUgraphNode* from, const CUgraphEdgeData* data,
                              std::size_t count) {
  CUgraphEdgeData programmatic{};
  programmatic.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
  programmatic.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
  const auto all = [&](const CUgraphEdgeData& one) {
    return std::all_of(data, data + count, [&](const CUgraphEdgeData& edge) {
      return std::memcmp(&edge, &one, sizeof one) == 0;
    });
  };
  if (data == nullptr || all({})) return Edges{from, count};
  if (all(programmatic)) return Edges{from, count, true};
  return std::nullopt;
}
#endif

CUresult add_any(CUgraph handle, const std::optional<Edges>& edges, CUgraphNodeParams& params,
                 CUgraphNode* node) {
  Graphs& graphs = Graphs::get();
  const std::scoped_lock lock(graphs.mutex);
  Graph* const graph = graphs.find(handle);
  if (graph == nullptr || !is_clean(params) || !edges) return CUDA_ERROR_INVALID_VALUE;
  if (params.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
    return add_if(*graph, *edges, params.conditional, node);
  if (params.type != CU_GRAPH_NODE_TYPE_KERNEL) return CUDA_ERROR_NOT_SUPPORTED;
  const CUDA_KERNEL_NODE_PARAMS_v3& kernel = params.kernel;
  return add_kernel(*graph, *edges,
                    {.func = kernel.func,
                     .gridDimX = kernel.gridDimX,
                     .gridDimY = kernel.gridDimY,
                     .gridDimZ = kernel.gridDimZ,
                     .blockDimX = kernel.blockDimX,
                     .blockDimY = kernel.blockDimY,
                     .blockDimZ = kernel.blockDimZ,
                     .sharedMemBytes = kernel.sharedMemBytes,
                     .kernelParams = kernel.kernelParams,
                     .extra = kernel.extra,
                     .kern = nullptr,
                     .ctx = nullptr},
                    node);
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuGraphCreate(CUgraph* handle, unsigned flags) {
  FAKE_CUDA_ENTER(cuGraphCreate, Context);
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const auto graph = std::make_shared<Graph>();
  const std::scoped_lock lock(Graphs::get().mutex);
  *handle = handle_of(graph);
  Graphs::get().graphs[*handle] = graph;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphDestroy(CUgraph handle) {
  FAKE_CUDA_ENTER(cuGraphDestroy, Context);
  const std::scoped_lock lock(Graphs::get().mutex);
  const Graph* const graph = Graphs::get().find(handle);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  erase_conditions(*graph);
  Graphs::get().graphs.erase(handle);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphAddKernelNode(CUgraphNode* node, CUgraph handle, const CUgraphNode* after,
                                      std::size_t count, const CUDA_KERNEL_NODE_PARAMS* params) {
  FAKE_CUDA_ENTER(cuGraphAddKernelNode, Context);
  const std::scoped_lock lock(Graphs::get().mutex);
  Graph* const graph = Graphs::get().find(handle);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add_kernel(*graph, {after, count}, *params, node);
}

CUresult CUDAAPI cuGraphConditionalHandleCreate(CUgraphConditionalHandle* handle, CUgraph graph,
                                                CUcontext context, unsigned value, unsigned flags) {
  FAKE_CUDA_ENTER(cuGraphConditionalHandleCreate, Context);
  Graphs& graphs = Graphs::get();
  const std::scoped_lock lock(graphs.mutex);
  Graph* const owner = graphs.find(graph);
  if (owner == nullptr || context != primary_context() || flags > CU_GRAPH_COND_ASSIGN_DEFAULT)
    return CUDA_ERROR_INVALID_VALUE;
  *handle = ++graphs.newest_condition;
  Condition& condition = graphs.conditions[*handle];
  condition.graph = owner;
  if (flags == CU_GRAPH_COND_ASSIGN_DEFAULT) condition.at_launch = value;
  owner->conditions.push_back(*handle);
  return CUDA_SUCCESS;
}

#if CUDA_VERSION >= 13000
CUresult CUDAAPI cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                const CUgraphEdgeData* data, std::size_t count,
                                CUgraphNodeParams* params) {
  FAKE_CUDA_ENTER(cuGraphAddNode, Context);
  return add_any(graph, edges_of(after, data, count), *params, node);
}
#else
CUresult CUDAAPI cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                std::size_t count, CUgraphNodeParams* params) {
  FAKE_CUDA_ENTER(cuGraphAddNode, Context);
  return add_any(graph, Edges{after, count}, *params, node);
}
#endif

CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec* handle, CUgraph graph,
                                             unsigned long long) {
  FAKE_CUDA_ENTER(cuGraphInstantiateWithFlags, Context);
  leasehold::simt::set_condition_hook(&set_condition);
  Graphs& graphs = Graphs::get();
  const std::scoped_lock lock(graphs.mutex);
  const Graph* const from = graphs.find(graph);
  if (from == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto exec = std::make_shared<Exec>();
  exec->items = items_of(*from);
  collect_conditions(*from, exec->conditions);
  const auto is_idle = [&](auto condition) { return !graphs.conditions[condition].used; };
  if (std::ranges::any_of(exec->conditions, is_idle)) return CUDA_ERROR_INVALID_VALUE;
  *handle = reinterpret_cast<CUgraphExec>(exec.get());
  graphs.execs[*handle] = std::move(exec);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec handle) {
  FAKE_CUDA_ENTER(cuGraphExecDestroy, Context);
  const std::scoped_lock lock(Graphs::get().mutex);
  return Graphs::get().execs.erase(handle) > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuGraphUpload(CUgraphExec handle, CUstream stream) {
  FAKE_CUDA_ENTER(cuGraphUpload, Context);
  if (stream_of(stream) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const std::scoped_lock lock(Graphs::get().mutex);
  return Graphs::get().execs.contains(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuGraphLaunch(CUgraphExec handle, CUstream stream) {
  FAKE_CUDA_ENTER(cuGraphLaunch, Context);
  Stream* const to = stream_of(stream);
  if (to == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  std::shared_ptr<const Exec> exec;
  {
    const std::scoped_lock lock(Graphs::get().mutex);
    const auto at = Graphs::get().execs.find(handle);
    if (at == Graphs::get().execs.end()) return CUDA_ERROR_INVALID_VALUE;
    exec = at->second;
  }
  auto more = [exec] { return begin_launch(*exec); };
  Executor::get().queue(to, {.more = std::move(more)});
  return CUDA_SUCCESS;
}
}
