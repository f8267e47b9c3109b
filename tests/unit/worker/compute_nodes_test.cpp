/// What a worker asks of the system on machines with one node of memory and with several.
#include "worker/compute_nodes.hpp"

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <sstream>
#include <string>

#include "ipc/region/memory_object.hpp"
#include "tests/support/required.hpp"

namespace leasehold {
namespace {

using testing::required;

CpuSet cpus(const std::string& list) {
  return CpuSet::parse(list).value();
}

NumaNodes two_nodes() {
  return {.nodes = {{0, cpus("0-3")}, {5, cpus("4-5")}}, .problem = {}};
}

/// Records calls instead of making them.
struct Calls {
  std::vector<std::uint32_t> bound;  ///< Numbers of cores.
  std::vector<std::pair<std::size_t, std::uint32_t>> preferred;
  Result<void> answer;

  NodeCalls as_calls() {
    return {.bind =
                [this](pthread_t, const CpuSet& to) {
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

/// What is logged during its lifetime.
class Log {
 public:
  Log() {
    auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(text_);
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", std::move(sink)));
  }
  ~Log() { spdlog::set_default_logger(before_); }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  std::size_t lines() const {
    const std::string all = text_.str();
    return static_cast<std::size_t>(std::ranges::count(all, '\n'));
  }
  bool has(const std::string& part) const { return text_.str().contains(part); }

 private:
  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
};

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
  const Log log;
  Calls calls;
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
  Calls calls;
  const ComputeNodes nodes(two_nodes(), 6, calls.as_calls());
  CHECK(nodes.count() == 2);
  CHECK(nodes.pool().threads == std::vector<std::uint32_t>{4, 2});
  CHECK(nodes.engine_cpus().contains(cpus("0-3")));
  CHECK(nodes.engine_cpus().count() == 4);
  const ThreadPool pool(6, nodes.pool());
  CHECK(calls.bound == std::vector<std::uint32_t>{4, 4, 4, 2, 2});
}

TEST_CASE("compute nodes: weights are placed in proportion to threads, before they have pages") {
  Calls calls;
  place(ComputeNodes(two_nodes(), 6, calls.as_calls()), 3);
  CHECK(calls.preferred ==
        std::vector<std::pair<std::size_t, std::uint32_t>>{{2 * kPage, 0}, {kPage, 5}});
}

TEST_CASE("compute nodes: what the system refuses is logged once, and has no other effect") {
  const Log log;
  Calls calls{.bound = {}, .preferred = {}, .answer = fail(Errc::SystemError, "not here")};
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
  const Log log;
  CHECK(ComputeNodes({.nodes = {}, .problem = "online: empty"}, 6).count() == 1);
  CHECK(log.lines() == 1);
  CHECK(log.has("online: empty"));
  CHECK(log.has("--numa off"));
}

}  // namespace leasehold
