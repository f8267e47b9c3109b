/// What the parts of a worker get from the backend's nodes of memory.
#include "worker/compute/compute.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <system_error>

#include "ipc/region/memory_object.hpp"
#include "ipc/table/lease_table.hpp"
#include "tests/support/required.hpp"
#include "tests/unit/worker/node_calls.hpp"

namespace leasehold::compute_test {
namespace {

using testing::are_equal;
using testing::cpus;
using testing::NodeCallRecord;
using testing::required;

/// A worker on host memory that has no model yet.
class Scene {
 public:
  explicit Scene(std::uint32_t threads) { options.threads = threads; }

  Result<Compute> make(NodeCallRecord& calls) {
    const GateDependencies gates{.worker = WorkerId{0},
                                 .table = &lent_.table,
                                 .segment = &lent_.segment,
                                 .stops = &stops_,
                                 .probe = nullptr};
    const BackendLimits limits{
        .max_rows = 1, .max_context = 32, .n_heads = 1, .head_dim = 32, .max_width = 32};
    return make_compute(options, lent_,
                        {.arithmetic = Arithmetic::F32, .limits = limits, .gates = gates},
                        calls.as_calls());
  }

  WorkerOptions options;

 private:
  LeaseTable table_ = required(LeaseTable::create(8));
  WorkerSegmentReader segment_ = required(WorkerSegmentReader::create());
  Attachment lent_{.worker = WorkerId{0},
                   .id = {},
                   .token_key = {},
                   .table = TableReader::in_process(table_),
                   .segment = WorkerSegmentWriter::in_process(segment_),
                   .device = "cpu",
                   .device_uuid = {},
                   .wakeup_fd = {}};
  StopFlags stops_;
};

/// A matrix of two huge pages, placed in memory of its size.
void place(const PlaceWeights& placer) {
  std::vector<WeightTensor> weights{{.name = "w", .rows = 1, .columns = 1}};
  weights.front().size_bytes = std::uint64_t{4} << 20;
  const WeightsLayout layout = assign_weight_offsets(std::move(weights));
  const MemoryObject object =
      required(MemoryObject::create({.name = "region", .size_bytes = layout.size_bytes}));
  placer(object.fd(), layout);
}

void check_one_node(const Result<Compute>& compute) {
  REQUIRE(compute);
  CHECK_FALSE(compute->weights_placer);
  CHECK_FALSE(compute->description.contains("nodes"));
}

}  // namespace

TEST_CASE("compute: on two nodes the pool, the engine and the weights are spread") {
  NodeCallRecord calls;
  Scene scene(6);
  const Compute compute = required(scene.make(calls));
  CHECK(compute.description == fmt::format("{} threads=6 nodes=2", compute.backend->name()));
  CHECK(compute.backend->name().starts_with("cpu-"));
  CHECK(calls.bound == std::vector<std::uint32_t>{4, 4, 4, 2, 2});
  CHECK(are_equal(compute.engine_cpus, cpus("0-3")));
  REQUIRE(compute.weights_placer);
  place(compute.weights_placer);
  REQUIRE(calls.preferred.size() == 2);
  CHECK(calls.preferred.back().second == 5);
}

TEST_CASE(
    "compute: without nodes the engine has the cores that were chosen, and nothing is placed") {
  NodeCallRecord calls;
  Scene scene(2);
  scene.options.spread_over_nodes = false;
  scene.options.compute_cpus = CpuSet::of_this_thread();
  const auto compute = scene.make(calls);
  check_one_node(compute);
  CHECK(are_equal(compute->engine_cpus, scene.options.compute_cpus));
  CHECK(calls.asked.empty());
  CHECK(calls.bound.empty());
}

TEST_CASE("compute: the reference backend that replaces one that fails uses no nodes") {
  NodeCallRecord calls{.are_threads_scarce = true};
  Scene scene(6);
  const auto compute = scene.make(calls);
  check_one_node(compute);
  CHECK(compute->backend->name() == "reference");
  CHECK(compute->engine_cpus.empty());
}

TEST_CASE("compute: what --backend cpu or --simd asks for is not replaced") {
  NodeCallRecord calls{.are_threads_scarce = true};
  Scene scene(6);
  const bool is_path = GENERATE(false, true);
  if (is_path) scene.options.simd = SimdPath::Scalar;
  if (!is_path) scene.options.backend = BackendChoice::Cpu;
  const auto refused = scene.make(calls);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::SystemError);
}

}  // namespace leasehold::compute_test
