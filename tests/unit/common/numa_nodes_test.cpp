/// The nodes of machines that are described in files, and how threads are spread over them.
#include "common/machine/numa_nodes.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "tests/support/temporary_directory.hpp"

namespace leasehold::numa_nodes_test {
namespace {

using Files = std::map<std::string, std::string>;

CpuSet cpus(const std::string& list) {
  return CpuSet::parse(list).value();
}

bool are_equal(const CpuSet& a, const CpuSet& b) {
  return a.contains(b) && b.contains(a);
}

/// Two nodes of eight cores, numbered as hyperthreads are.
Files two_nodes() {
  return {{"online", "0-1\n"},
          {"has_memory", "0-1\n"},
          {"node0/cpulist", "0-3,8-11\n"},
          {"node0/distance", "10 21\n"},
          {"node1/cpulist", "4-7,12-15\n"},
          {"node1/distance", "21 10\n"}};
}

NumaNodes read(const Files& files, const CpuSet& usable = cpus("0-15")) {
  const TemporaryDirectory directory = TemporaryDirectory::create("nodes").value();
  for (const auto& [name, text] : files) {
    const std::filesystem::path path = std::filesystem::path(directory.path()) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  return read_numa_nodes(usable, directory.path());
}

/// "0:8 1:8": the threads of each node.
std::string spread(const std::vector<std::string>& lists, std::uint32_t threads) {
  std::vector<NumaNode> nodes;
  for (std::uint32_t i = 0; i < lists.size(); ++i) nodes.push_back({i, cpus(lists[i])});
  std::string text;
  for (const NodeThreads& node : spread_threads(nodes, threads))
    text +=
        (text.empty() ? "" : " ") + std::to_string(node.id) + ':' + std::to_string(node.threads);
  return text;
}

}  // namespace

TEST_CASE("numa nodes: each has the cores of its list") {
  const NumaNodes found = read(two_nodes());
  CHECK(found.problem.empty());
  REQUIRE(found.nodes.size() == 2);
  CHECK(found.nodes[0].id == 0);
  CHECK(are_equal(found.nodes[0].cpus, cpus("0-3,8-11")));
  CHECK(found.nodes[1].id == 1);
  CHECK(are_equal(found.nodes[1].cpus, cpus("4-7,12-15")));
}

TEST_CASE("numa nodes: cores that this process may not use do not count") {
  const NumaNodes some = read(two_nodes(), cpus("1-5,9"));
  REQUIRE(some.nodes.size() == 2);
  CHECK(are_equal(some.nodes[0].cpus, cpus("1-3,9")));
  CHECK(are_equal(some.nodes[1].cpus, cpus("4-5")));
  const NumaNodes one = read(two_nodes(), cpus("4-7"));
  REQUIRE(one.nodes.size() == 1);
  CHECK(one.nodes[0].id == 1);
  CHECK(one.problem.empty());
}

TEST_CASE("numa nodes: nodes that are offline or have memory only are left out") {
  Files files = two_nodes();
  files["online"] = "0,2-3\n";
  files["has_memory"] = "0,2-3\n";
  files["node2/cpulist"] = "\n";
  files["node3/cpulist"] = "4-7\n";
  const NumaNodes found = read(files);
  CHECK(found.problem.empty());
  REQUIRE(found.nodes.size() == 2);
  CHECK(found.nodes[0].id == 0);
  CHECK(found.nodes[1].id == 3);
}

TEST_CASE("numa nodes: cores of a node without memory count for the nearest one with memory") {
  Files files = two_nodes();
  files["online"] = "0-2\n";
  files["node0/distance"] = "10 21 30\n";
  files["node1/distance"] = "21 10 20\n";
  files["node2/cpulist"] = "16-19\n";
  files["node2/distance"] = "30 20 10\n";
  const NumaNodes found = read(files, cpus("0-19"));
  CHECK(found.problem.empty());
  REQUIRE(found.nodes.size() == 2);
  CHECK(are_equal(found.nodes[0].cpus, cpus("0-3,8-11")));
  CHECK(are_equal(found.nodes[1].cpus, cpus("4-7,12-19")));
  CHECK(read(files, cpus("16-19")).nodes.at(0).id == 1);
}

TEST_CASE("numa nodes: a machine with one node, or a kernel that knows none, has no warning") {
  for (const Files& files : {Files{}, Files{{"online", "0\n"}}}) {
    const NumaNodes found = read(files);
    CHECK(found.nodes.empty());
    CHECK(found.problem.empty());
  }
  const NumaNodes unknown = read(two_nodes(), CpuSet());
  CHECK(unknown.nodes.empty());
  CHECK(unknown.problem.empty());
}

TEST_CASE("numa nodes: what is malformed or missing makes one node, and the problem names it") {
  const auto with = [](const std::string& name, const std::string& text) {
    Files files = two_nodes();
    files[name] = text;
    return files;
  };
  const auto without = [](const std::string& name) {
    Files files = two_nodes();
    files.erase(name);
    return files;
  };
  const std::vector<std::pair<Files, std::string>> broken{
      {with("online", "zero\n"), "online"},
      {with("online", "0-\n"), "online"},
      {with("has_memory", "0,,1\n"), "has_memory"},
      {without("has_memory"), "has_memory"},
      {with("node1/cpulist", "4-x\n"), "node1/cpulist"},
      {with("node1/cpulist", "4-99999\n"), "node1/cpulist"},
      {without("node1/cpulist"), "node1/cpulist"}};
  for (const auto& [files, name] : broken) {
    const NumaNodes found = read(files);
    CAPTURE(name, found.problem);
    CHECK(found.nodes.empty());
    CHECK(found.problem.find(name) != std::string::npos);
    CHECK_FALSE(found.problem.contains("core"));  // a list of nodes is none of cores
  }
  CHECK(read(with("online", "zero\n")).problem.ends_with("\"zero\" is not a list of numbers"));
}

TEST_CASE("numa nodes: a node without memory needs distances") {
  for (const char* distances : {"", "21\n", "21 10 9\n", "21 x\n", "21 -1\n"}) {
    Files files = two_nodes();
    files["has_memory"] = "0\n";
    files["node1/distance"] = distances;
    CAPTURE(distances);
    CHECK(read(files).nodes.empty());
    CHECK(read(files).problem.find("node1/distance") != std::string::npos);
  }
  Files files = two_nodes();
  files["has_memory"] = "\n";
  CHECK(read(files).problem.find("has_memory") != std::string::npos);
}

TEST_CASE("numa nodes: this machine's can be read") {
  CHECK(read_numa_nodes(CpuSet::of_this_thread()).problem.empty());
}

TEST_CASE("numa nodes: threads are spread in proportion to cores") {
  CHECK(spread({"0-7", "8-15"}, 16) == "0:8 1:8");
  CHECK(spread({"0-7", "8-15"}, 63) == "0:32 1:31");
  CHECK(spread({"0-7", "8-11"}, 12) == "0:8 1:4");
  CHECK(spread({"0-7", "8-11"}, 5) == "0:3 1:2");
  CHECK(spread({"0-3", "4-7", "8-11"}, 4) == "0:2 1:1 2:1");
  CHECK(spread({"0-5", "6-7", "8-10"}, 2) == "0:1 2:1");
}

TEST_CASE("numa nodes: threads that are all on one node are not spread") {
  CHECK(spread({"0-7", "8-15"}, 1).empty());
  CHECK(spread({"0-30", "31"}, 2).empty());
  CHECK(spread({"0-7"}, 8).empty());
  CHECK(spread({}, 8).empty());
}

}  // namespace leasehold::numa_nodes_test
