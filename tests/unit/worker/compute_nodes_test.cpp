/// What a worker asks of the system on machines with one node of memory and with several.
#include "worker/compute/compute_nodes.hpp"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "ipc/region/memory_object.hpp"
#include "tests/support/captured_log.hpp"
#include "tests/support/required.hpp"
#include "tests/unit/worker/node_calls.hpp"

namespace leasehold::compute_nodes_test {
namespace {

using testing::are_equal;
using testing::CapturedLog;
using testing::cpus;
using testing::NodeCallRecord;
using testing::required;
using testing::two_nodes;

constexpr std::uint64_t kPage = std::uint64_t{2} << 20;

/// One matrix of some huge pages.
WeightsLayout layout_of(std::uint64_t pages) {
  std::vector<WeightTensor> weights{{.name = "w", .rows = 1, .columns = 1}};
  weights.front().size_bytes = pages * kPage;
  return assign_weight_offsets(std::move(weights));
}

void place(const ComputeNodes& nodes, std::uint64_t pages) {
  const MemoryObject object =
      required(MemoryObject::create({.name = "region", .size_bytes = pages * kPage}));
  nodes.weights_placer()(object.fd(), layout_of(pages));
  CHECK(required(object.allocated_bytes()) == 0);
}

}  // namespace

TEST_CASE("compute nodes: with one node no call is made, and nothing is logged") {
  const CapturedLog log;
  NodeCallRecord calls;
  for (const auto& found : {NumaNodes{}, NumaNodes{.nodes = {{0, cpus("0-7")}}, .problem = {}}}) {
    const ComputeNodes nodes(found, 8, calls.as_calls());
    CHECK(nodes.count() == 1);
    CHECK(nodes.engine_cpus().empty());
    CHECK_FALSE(nodes.weights_placer());
    CHECK(nodes.pool().threads.empty());
    CHECK_FALSE(nodes.pool().bind);
    const ThreadPool pool(3, nodes.pool());
  }
  CHECK(calls.bound.empty());
  CHECK(calls.preferred.empty());
  CHECK(log.lines() == 0);
}

TEST_CASE("compute nodes: threads that are all on one node are as on a machine with one") {
  CHECK(ComputeNodes(two_nodes(), 1).count() == 1);
}

TEST_CASE("compute nodes: each thread but the engine's is bound to the cores of its node") {
  NodeCallRecord calls;
  const ComputeNodes nodes(two_nodes(), 6, calls.as_calls());
  CHECK(nodes.count() == 2);
  CHECK(nodes.pool().threads == std::vector<std::uint32_t>{4, 2});
  CHECK(are_equal(nodes.engine_cpus(), cpus("0-3")));
  const ThreadPool pool(6, nodes.pool());
  CHECK(calls.bound == std::vector<std::uint32_t>{4, 4, 4, 2, 2});
}

TEST_CASE("compute nodes: weights are placed in proportion to threads, before they have pages") {
  NodeCallRecord calls;
  place(ComputeNodes(two_nodes(), 6, calls.as_calls()), 3);
  CHECK(calls.preferred ==
        std::vector<std::pair<std::size_t, std::uint32_t>>{{2 * kPage, 0}, {kPage, 5}});
}

TEST_CASE("compute nodes: what the system refuses is logged once, and has no other effect") {
  const CapturedLog log;
  NodeCallRecord calls{.answer = fail(Errc::SystemError, "not here")};
  const ComputeNodes nodes(two_nodes(), 6, calls.as_calls());
  ThreadPool pool(6, nodes.pool());
  CHECK(calls.bound.size() == 5);
  CHECK(log.lines() == 1);
  CHECK(log.has("compute threads are not bound"));
  place(nodes, 3);
  place(nodes, 3);
  CHECK(log.lines() == 2);
  CHECK(log.has("weights are not placed"));
  CHECK(log.has("not here"));
  std::atomic<int> tiles{0};
  pool.run(100, [&](std::uint32_t, std::uint32_t) {
    ++tiles;
    return true;
  });
  CHECK(tiles == 100);
}

TEST_CASE("compute nodes: nodes that cannot be read are one node and a warning") {
  const CapturedLog log;
  CHECK(ComputeNodes({.nodes = {}, .problem = "online: empty"}, 6).count() == 1);
  CHECK(log.lines() == 1);
  CHECK(log.has("online: empty"));
  CHECK(log.has("--numa off"));
}

TEST_CASE("nodes of a worker: --numa auto uses those of the cores that it may use") {
  NodeCallRecord calls;
  WorkerOptions options;
  options.threads = 6;
  CHECK(nodes_for(options, calls.as_calls()).count() == 2);
  REQUIRE(calls.asked.size() == 1);
  CHECK(are_equal(calls.asked.front(), CpuSet::of_this_thread()));
}

TEST_CASE("nodes of a worker: --numa off and the reference backend use one, and read none") {
  NodeCallRecord calls;
  WorkerOptions off;
  off.threads = 6;
  off.spread_over_nodes = false;
  WorkerOptions reference;
  reference.threads = 6;
  reference.backend = BackendChoice::Reference;
  for (const WorkerOptions& options : {off, reference})
    CHECK(nodes_for(options, calls.as_calls()).count() == 1);
  CHECK(calls.asked.empty());
}

TEST_CASE("nodes of a worker: --compute-cpus chooses nodes, and cores on them") {
  NodeCallRecord calls;
  calls.machine = [](const CpuSet& usable) {
    NumaNodes found;
    for (const NumaNode& node : two_nodes().nodes)
      if (const CpuSet both = node.cpus.common_with(usable); !both.empty())
        found.nodes.push_back({node.id, both});
    return found;
  };
  WorkerOptions options;
  options.threads = 3;
  options.compute_cpus = cpus("1-3");
  CHECK(nodes_for(options, calls.as_calls()).count() == 1);
  options.compute_cpus = cpus("2-4");
  const ComputeNodes both = nodes_for(options, calls.as_calls());
  CHECK(both.count() == 2);
  CHECK(are_equal(both.engine_cpus(), cpus("2-3")));
  const ThreadPool pool(3, both.pool());
  CHECK(calls.bound == std::vector<std::uint32_t>{2, 1});
}

}  // namespace leasehold::compute_nodes_test
