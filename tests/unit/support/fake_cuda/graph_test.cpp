/// Graphs run their nodes in dependency order; an IF node reads its condition when it is reached.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/unit/support/fake_cuda/card.hpp"

namespace leasehold::fake_cuda {
namespace {

using Log = std::vector<std::uint32_t>;

/// A graph under construction and its executable form.
class Graph {
 public:
  explicit Graph(Card& card) : card_(card) {
    REQUIRE(driver().cuGraphCreate(&graph_, 0) == CUDA_SUCCESS);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() {
    if (exec_ != nullptr) driver().cuGraphExecDestroy(exec_);
    driver().cuGraphDestroy(graph_);
  }

  CUgraph handle() const { return graph_; }
  CUgraphNode append(CUgraph graph, std::uint32_t value, std::vector<CUgraphNode> after = {}) {
    Entry entry{.log = card_.device_log(), .value = value};
    return add(graph, "lh_trace_append", &entry, after);
  }
  CUgraphNode set(CUgraphConditionalHandle condition, std::uint32_t value) {
    Setting setting{.handle = condition, .value = value};
    return add(graph_, "lh_trace_condition", &setting, {});
  }
  /// Reads log[index] before and after a wait, and stores both from log[to] on.
  CUgraphNode read_twice(std::uint32_t index, std::uint32_t to, CUgraphNode after,
                         bool programmatic) {
    TwoReads reads{.from = card_.device_log() + index, .to = card_.device_log() + to};
    if (!programmatic) return add(graph_, "lh_trace_two_reads", &reads, {after});
    void* all[] = {&reads};
    CUgraphNodeParams params{};
    params.type = CU_GRAPH_NODE_TYPE_KERNEL;
    params.kernel.func = card_.function("lh_trace_two_reads");
    params.kernel.gridDimX = params.kernel.gridDimY = params.kernel.gridDimZ = 1;
    params.kernel.blockDimX = 32;
    params.kernel.blockDimY = params.kernel.blockDimZ = 1;
    params.kernel.kernelParams = all;
    CUgraphEdgeData edge{};
    edge.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
    edge.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    CUgraphNode added = nullptr;
    REQUIRE(driver().cuGraphAddNode(&added, graph_, &after, &edge, 1, &params) == CUDA_SUCCESS);
    return added;
  }
  CUgraphConditionalHandle condition(unsigned value, unsigned flags) {
    CUgraphConditionalHandle handle = 0;
    REQUIRE(driver().cuGraphConditionalHandleCreate(&handle, graph_, card_.context(), value,
                                                    flags) == CUDA_SUCCESS);
    return handle;
  }
  /// Adds an IF node and returns its body.
  CUgraph branch(CUgraphConditionalHandle condition, std::vector<CUgraphNode> after) {
    CUgraphNodeParams params{};
    params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    params.conditional.handle = condition;
    params.conditional.type = CU_GRAPH_COND_TYPE_IF;
    params.conditional.size = 1;
    params.conditional.ctx = card_.context();
    CUgraphNode node = nullptr;
    REQUIRE(driver().cuGraphAddNode(&node, graph_, after.data(), nullptr, after.size(), &params) ==
            CUDA_SUCCESS);
    branch_node_ = node;
    return params.conditional.phGraph_out[0];
  }
  CUgraphNode branch_node() const { return branch_node_; }
  void launch() {
    if (exec_ == nullptr)
      REQUIRE(driver().cuGraphInstantiateWithFlags(&exec_, graph_, 0) == CUDA_SUCCESS);
    REQUIRE(driver().cuGraphUpload(exec_, card_.stream()) == CUDA_SUCCESS);
    REQUIRE(driver().cuGraphLaunch(exec_, card_.stream()) == CUDA_SUCCESS);
  }

 private:
  const cuda::Driver& driver() const { return card_.driver(); }
  CUgraphNode add(CUgraph graph, const char* kernel, void* params,
                  const std::vector<CUgraphNode>& after) {
    void* all[] = {params};
    const auto node = card_.node(card_.function(kernel), all);
    CUgraphNode added = nullptr;
    REQUIRE(driver().cuGraphAddKernelNode(&added, graph, after.data(), after.size(), &node) ==
            CUDA_SUCCESS);
    return added;
  }

  Card& card_;
  CUgraph graph_ = nullptr;
  CUgraphExec exec_ = nullptr;
  CUgraphNode branch_node_ = nullptr;
};

TEST_CASE("fake_cuda: a graph's nodes run in the order of their dependencies, every time") {
  Card card;
  Graph graph(card);
  CUgraphNode first = graph.append(graph.handle(), 1);
  CUgraphNode second = graph.append(graph.handle(), 2, {first});
  graph.append(graph.handle(), 3, {second});
  graph.launch();
  graph.launch();
  card.append(9);
  CHECK(card.log() == Log{1, 2, 3, 1, 2, 3, 9});
}

TEST_CASE("fake_cuda: nodes that do not depend on each other run in another order than added") {
  Card card;
  Graph graph(card);
  graph.append(graph.handle(), 1);
  graph.append(graph.handle(), 2);
  graph.launch();
  CHECK(card.log() == Log{2, 1});
}

TEST_CASE("fake_cuda: an IF node runs its body if an earlier kernel set the condition") {
  Card card;
  for (const std::uint32_t value : {0u, 1u}) {
    Graph graph(card);
    const auto condition = graph.condition(1 - value, CU_GRAPH_COND_ASSIGN_DEFAULT);
    CUgraphNode set = graph.set(condition, value);
    CUgraph body = graph.branch(condition, {set});
    CUgraphNode inside = graph.append(body, 10 + value);
    graph.append(body, 20 + value, {inside});
    graph.append(graph.handle(), 30 + value, {graph.branch_node()});
    graph.launch();
    REQUIRE(card.driver().cuCtxSynchronize() == CUDA_SUCCESS);
  }
  CHECK(card.log() == Log{30, 11, 21, 31});
}

TEST_CASE("fake_cuda: a condition that no kernel sets has its default at each launch") {
  Card card;
  Graph graph(card);
  const auto condition = graph.condition(1, CU_GRAPH_COND_ASSIGN_DEFAULT);
  CUgraph body = graph.branch(condition, {});
  graph.append(body, 1);
  graph.launch();
  graph.launch();
  CHECK(card.log() == Log{1, 1});
}

TEST_CASE("fake_cuda: a test can run the nodes of a graph one by one") {
  Card card;
  Graph graph(card);
  CUgraphNode first = graph.append(graph.handle(), 1);
  graph.append(graph.handle(), 2, {first});
  fake_cuda_hold();
  graph.launch();
  CHECK(fake_cuda_run(1) == 1);
  CHECK(card.log_so_far() == Log{1});
  fake_cuda_release();
  CHECK(card.log() == Log{1, 2});
}

TEST_CASE("fake_cuda: a condition belongs to a context, and a node's unused bytes are zero") {
  Card card;
  Graph graph(card);
  const cuda::Driver& driver = card.driver();
  CUgraphConditionalHandle none = 0;
  CHECK(driver.cuGraphConditionalHandleCreate(&none, graph.handle(), nullptr, 0, 0) ==
        CUDA_ERROR_INVALID_VALUE);
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  params.conditional.handle = graph.condition(0, 0);
  params.conditional.type = CU_GRAPH_COND_TYPE_IF;
  params.conditional.size = 1;
  const auto add = [&] {
    CUgraphNode node = nullptr;
    return driver.cuGraphAddNode(&node, graph.handle(), nullptr, nullptr, 0, &params);
  };
  CHECK(add() == CUDA_ERROR_INVALID_VALUE);
  params.conditional.ctx = card.context();
  params.reserved2 = 1;
  CHECK(add() == CUDA_ERROR_INVALID_VALUE);
  params.reserved2 = 0;
  CHECK(add() == CUDA_SUCCESS);
}

TEST_CASE("fake_cuda: a graph with a condition that no node uses is rejected") {
  Card card;
  Graph graph(card);
  graph.append(graph.handle(), 1);
  (void)graph.condition(0, 0);
  CUgraphExec exec = nullptr;
  CHECK(card.driver().cuGraphInstantiateWithFlags(&exec, graph.handle(), 0) ==
        CUDA_ERROR_INVALID_VALUE);
}

#if LEASEHOLD_CUDA_EDGE_DATA
constexpr std::uint32_t kAppended = 1;
constexpr std::uint32_t kStored = 20;

/// The reads of two kernels after one that stores 7 at kAppended: the first reads that word, the
/// second log[index], each before and after its wait.
Log early_reads(std::uint32_t index, bool programmatic) {
  Card card;
  Graph graph(card);
  CUgraphNode appended = graph.append(graph.handle(), 7);
  CUgraphNode first = graph.read_twice(kAppended, kStored, appended, programmatic);
  graph.read_twice(index, kStored + 2, first, programmatic);
  fake_cuda_hide_unfinished(true);
  graph.launch();
  (void)card.log();
  fake_cuda_hide_unfinished(false);
  const std::uint32_t* const stored = card.device_log() + kStored;
  return {stored[0], stored[1], stored[2], stored[3]};
}

TEST_CASE("fake_cuda: an early kernel reads NaN where kernels before it may still write") {
  constexpr std::uint32_t kNan = 0xFFFF'FFFF;
  CHECK(early_reads(kStored + 1, true) == Log{kNan, 7, kNan, 7});
  // The kernel before the last one may still run as well.
  CHECK(early_reads(kAppended, true) == Log{kNan, 7, kNan, 7});
  CHECK(early_reads(kStored + 1, false) == Log{7, 7, 7, 7});
}
#endif

}  // namespace
}  // namespace leasehold::fake_cuda
