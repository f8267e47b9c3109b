#include "common/machine/numa_nodes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>

#include "common/machine/text_file.hpp"

namespace leasehold {
namespace {

constexpr std::size_t kMaxNodeFileBytes = 1 << 16;

/// A node as its files describe it, with all of its cores.
struct FoundNode {
  std::uint32_t id = 0;
  CpuSet cpus;
  bool has_memory = false;
};

Result<std::string> read_line(const std::string& path) {
  std::string text = TRY(read_text_file(path, kMaxNodeFileBytes));
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

/// A list of cores, or of nodes, which has the same format. An empty line is an empty list.
Result<CpuSet> read_list(const std::string& path) {
  const std::string line = TRY(read_line(path));
  if (line.empty()) return CpuSet();
  auto list = CpuSet::parse(line);
  if (list) return list;
  return fail(Errc::FileCorrupt, fmt::format("{}: \"{}\" is not a list of numbers", path, line));
}

Result<std::vector<FoundNode>> find_nodes(const CpuSet& online, const std::string& root) {
  const CpuSet with_memory = TRY(read_list(root + "/has_memory"));
  std::vector<FoundNode> found;
  for (std::uint32_t id = 0; id < CPU_SETSIZE; ++id) {
    if (!online.has(id)) continue;
    const CpuSet cpus = TRY(read_list(fmt::format("{}/node{}/cpulist", root, id)));
    found.push_back({.id = id, .cpus = cpus, .has_memory = with_memory.has(id)});
  }
  return found;
}

/// The distances from one node to each of the `n` online nodes, in their order.
Result<std::vector<std::uint32_t>> read_distances(const std::string& path, std::size_t n) {
  const std::string line = TRY(read_line(path));
  std::vector<std::uint32_t> distances;
  const char* at = line.data();
  const char* const end = at + line.size();
  while (at != end && distances.size() <= n) {
    while (at != end && *at == ' ') ++at;
    const auto [next, error] = std::from_chars(at, end, distances.emplace_back());
    if (error != std::errc()) break;
    at = next;
  }
  if (at == end && distances.size() == n) return distances;
  return fail(Errc::FileCorrupt, fmt::format("{}: \"{}\" is not {} distances", path, line, n));
}

/// The node with memory that is nearest to `found[from]`.
Result<std::size_t> nearest(const std::vector<FoundNode>& found, std::size_t from,
                            const std::string& root) {
  const auto distances =
      TRY(read_distances(fmt::format("{}/node{}/distance", root, found[from].id), found.size()));
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < found.size(); ++i)
    if (found[i].has_memory && (!best || distances[i] < distances[*best])) best = i;
  if (best) return *best;
  return fail(Errc::FileCorrupt, root + "/has_memory: no online node has memory");
}

Result<std::vector<NumaNode>> read_nodes(const CpuSet& usable, const CpuSet& online,
                                         const std::string& root) {
  std::vector<FoundNode> found = TRY(find_nodes(online, root));
  for (FoundNode& node : found) node.cpus = node.cpus.common_with(usable);
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i].has_memory || found[i].cpus.empty()) continue;
    const std::size_t to = TRY(nearest(found, i, root));
    found[to].cpus = found[to].cpus.joined_with(found[i].cpus);
  }
  std::vector<NumaNode> nodes;
  for (const FoundNode& node : found)
    if (node.has_memory && !node.cpus.empty()) nodes.push_back({.id = node.id, .cpus = node.cpus});
  return nodes;
}

}  // namespace

NumaNodes read_numa_nodes(const CpuSet& usable, const std::string& root) {
  if (usable.empty()) return {};
  const auto online = read_list(root + "/online");
  if (!online && online.error().code == Errc::FileNotFound) return {};
  if (!online) return {.nodes = {}, .problem = online.error().detail};
  if (online->count() < 2) return {};
  auto nodes = read_nodes(usable, *online, root);
  if (!nodes) return {.nodes = {}, .problem = nodes.error().detail};
  return {.nodes = *std::move(nodes), .problem = {}};
}

std::vector<NodeThreads> spread_threads(std::span<const NumaNode> nodes, std::uint32_t threads) {
  if (nodes.size() < 2) return {};
  std::uint64_t cores = 0;
  for (const NumaNode& node : nodes) cores += node.cpus.count();
  std::vector<NodeThreads> spread;
  std::vector<std::uint64_t> fractions;
  std::uint32_t left = threads;
  for (const NumaNode& node : nodes) {
    const std::uint64_t product = std::uint64_t{threads} * node.cpus.count();
    spread.push_back({node.id, node.cpus, static_cast<std::uint32_t>(product / cores)});
    fractions.push_back(product % cores);
    left -= spread.back().threads;
  }
  std::vector<std::size_t> order(spread.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](auto a, auto b) { return fractions[a] > fractions[b]; });
  for (std::uint32_t i = 0; i < left; ++i) ++spread[order[i]].threads;
  std::erase_if(spread, [](const NodeThreads& node) { return node.threads == 0; });
  if (spread.size() < 2) spread.clear();
  return spread;
}

}  // namespace leasehold
