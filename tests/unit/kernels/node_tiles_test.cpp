/// Tiles of launches that are cut among nodes of memory.
#include "kernels/cpu/node_tiles.hpp"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <latch>
#include <map>
#include <thread>
#include <vector>

#include "kernels/cpu/thread_pool.hpp"
#include "kernels/cpu/tiling.hpp"

namespace leasehold::node_tiles_test {
namespace {

using Threads = std::vector<std::uint32_t>;

TilePasses passes_of(const std::vector<std::uint32_t>& counts) {
  TilePasses passes;
  for (const std::uint32_t count : counts) passes.add(count);
  return passes;
}

/// A matmul of 600 outputs in F32, as AVX-512 cuts it.
MatmulTiles plan_f32(std::uint32_t n_in, std::uint32_t n_batch) {
  return MatmulTiles::plan(600, n_in, n_batch,
                           {.tile_macs = 500'000,
                            .macs_per_output = 500'000 * n_in * sizeof(float) / kTileWeightBytes,
                            .outputs_at_once = kDotOutputGroup});
}

/// The first tile of each pass that has any.
std::vector<std::uint32_t> begins_of(const TilePasses& passes) {
  std::vector<std::uint32_t> begins;
  std::uint32_t next = 0;
  for (const auto& [n_tiles, times] : passes.added())
    for (std::uint32_t p = 0; p < times; ++p, next += n_tiles)
      if (n_tiles > 0) begins.push_back(next);
  return begins;
}

/// All tiles of a node, in the order in which it takes them.
std::vector<std::uint32_t> all_of(NodeTiles& tiles, std::uint32_t node) {
  std::vector<std::uint32_t> taken;
  while (const auto tile = tiles.take(node)) taken.push_back(*tile);
  return taken;
}

/// Takes one tile at a time and waits for the last thread of the launch in it, so each thread of
/// the pool has exactly one tile.
std::map<std::uint32_t, std::uint32_t> tile_of_each_thread(ThreadPool& pool) {
  std::vector<std::uint32_t> tile_of(pool.threads());
  std::latch all(pool.threads());
  pool.run(pool.threads(), [&](std::uint32_t thread, std::uint32_t tile) {
    tile_of[thread] = tile;
    all.arrive_and_wait();
    return true;
  });
  std::map<std::uint32_t, std::uint32_t> by_thread;
  for (std::uint32_t t = 0; t < tile_of.size(); ++t) by_thread[t] = tile_of[t];
  return by_thread;
}

}  // namespace

TEST_CASE("node shares: parts cover a range in proportion to threads, and threads are in order") {
  const NodeShares shares(Threads{3, 1, 2});
  CHECK(shares.nodes() == 3);
  CHECK(shares.threads() == 6);
  CHECK(shares.threads_of(0) == 3);
  CHECK(shares.threads_of(2) == 2);
  std::vector<std::uint32_t> nodes;
  for (std::uint32_t t = 0; t < 6; ++t) nodes.push_back(shares.node_of(t));
  CHECK(nodes == std::vector<std::uint32_t>{0, 0, 0, 1, 2, 2});
  CHECK(shares.begin_of(0, 12) == 0);
  CHECK(shares.begin_of(1, 12) == 6);
  CHECK(shares.begin_of(2, 12) == 8);
  CHECK(shares.begin_of(3, 12) == 12);
  CHECK(shares.begin_of(3, std::uint64_t{1} << 45) == std::uint64_t{1} << 45);
}

TEST_CASE("tile passes: counts add up") {
  CHECK(TilePasses().count() == 0);
  CHECK(TilePasses().added().empty());
  CHECK(TilePasses(7).count() == 7);
  TilePasses many;
  many.add(3, 20);
  many.add(2);
  CHECK(many.count() == 62);
  REQUIRE(many.added().size() == 2);
  CHECK(many.added()[0] == TilePasses::EqualPasses{.n_tiles = 3, .times = 20});
  CHECK(many.added()[1] == TilePasses::EqualPasses{.n_tiles = 2, .times = 1});
}

TEST_CASE("node tiles: each node has its part of every pass, in order") {
  NodeTiles tiles(NodeShares(Threads{2, 1}));
  tiles.begin(passes_of({6, 3}));
  CHECK(all_of(tiles, 0) == std::vector<std::uint32_t>{0, 1, 2, 3, 6, 7});
  CHECK(all_of(tiles, 1) == std::vector<std::uint32_t>{4, 5, 8});
  CHECK_FALSE(tiles.take(0));
  tiles.begin(passes_of({3}));
  CHECK(all_of(tiles, 1) == std::vector<std::uint32_t>{2});
  CHECK(all_of(tiles, 0) == std::vector<std::uint32_t>{0, 1});
}

TEST_CASE("node tiles: each node has the same part of each of many equal passes") {
  NodeTiles tiles(NodeShares(Threads{2, 1}));
  for (const std::uint32_t times : {1u, 13u, 32u}) {
    TilePasses passes;
    passes.add(6, times);
    passes.add(3);
    tiles.begin(passes);
    std::vector<std::uint32_t> first;
    std::vector<std::uint32_t> second;
    for (std::uint32_t p = 0; p < times; ++p) {
      for (const std::uint32_t tile : {0u, 1u, 2u, 3u}) first.push_back(6 * p + tile);
      for (const std::uint32_t tile : {4u, 5u}) second.push_back(6 * p + tile);
    }
    for (const std::uint32_t tile : {0u, 1u}) first.push_back(6 * times + tile);
    second.push_back(6 * times + 2);
    CAPTURE(times);
    CHECK(all_of(tiles, 0) == first);
    CHECK(all_of(tiles, 1) == second);
  }
}

TEST_CASE("node tiles: every tile is taken exactly once, with any shares and passes") {
  for (const Threads& threads : {Threads{1, 1}, Threads{2, 1}, Threads{1, 4, 2}, Threads{31, 32}})
    for (const auto& counts : std::vector<std::vector<std::uint32_t>>{
             {}, {1}, {2}, {100}, {0, 5}, {7, 1, 1}, {30, 0, 2}}) {
      NodeTiles tiles{NodeShares(threads)};
      TilePasses passes;
      for (std::uint32_t i = 0; i < counts.size(); ++i) passes.add(counts[i], i == 0 ? 9 : i);
      tiles.begin(passes);
      std::vector<int> taken(passes.count());
      for (std::uint32_t node = 0; node < threads.size(); ++node)
        for (const std::uint32_t tile : all_of(tiles, node)) ++taken[tile];
      CAPTURE(threads, counts);
      REQUIRE(taken == std::vector<int>(passes.count(), 1));
    }
}

TEST_CASE("tiling: the passes of a matmul are those of its groups of batch rows") {
  for (const std::uint32_t n_in : {896u, 4096u, 4864u, 14336u})
    for (const std::uint32_t n_batch : {1u, 8u, 64u, 250u, 256u}) {
      const MatmulTiles tiles = plan_f32(n_in, n_batch);
      std::vector<std::uint32_t> begins;  // of passes: the first tiles of the first rows
      for (std::uint32_t t = 0; t < tiles.count(); ++t)
        if (tiles.outputs(t).begin == 0 && (t == 0 || tiles.outputs(t - 1).begin != 0))
          begins.push_back(t);
      CAPTURE(n_in, n_batch);
      CHECK(begins_of(tiles.passes()) == begins);
      CHECK(tiles.passes().count() == tiles.count());
    }
}

TEST_CASE("tiling: each node multiplies its rows of a wide matrix with every batch row") {
  for (const std::uint32_t n_in : {4096u, 14336u}) {
    const MatmulTiles tiles = plan_f32(n_in, 256);
    REQUIRE(begins_of(tiles.passes()).size() > 8);
    NodeTiles nodes(NodeShares(Threads{1, 1}));
    nodes.begin(tiles.passes());
    const std::uint32_t half = tiles.output_tiles() / 2 * tiles.outputs_per_tile;
    CAPTURE(n_in, half);
    for (const std::uint32_t node : {0u, 1u})
      for (const std::uint32_t tile : all_of(nodes, node))
        REQUIRE((tiles.outputs(tile).begin < half) == (node == 0));
  }
}

TEST_CASE("thread pool on nodes: every launch runs every tile exactly once") {
  const Threads threads = GENERATE(Threads{1, 1}, Threads{2, 1}, Threads{1, 1, 2});
  ThreadPool pool(NodeShares(threads).threads(), {.threads = threads, .bind = {}});
  for (std::uint32_t launch = 0; launch < 2000; ++launch) {
    const TilePasses passes = passes_of({launch % 67, launch % 5});
    std::vector<std::atomic<int>> done(passes.count());
    pool.run(passes, [&](std::uint32_t, std::uint32_t tile) {
      done[tile].fetch_add(1);
      return true;
    });
    CAPTURE(threads, launch);
    REQUIRE(std::ranges::all_of(done, [](const auto& count) { return count == 1; }));
  }
}

TEST_CASE("thread pool on nodes: a thread takes the tiles of its own node first") {
  const Threads threads{2, 3};
  ThreadPool pool(5, {.threads = threads, .bind = {}});
  for (int launch = 0; launch < 100; ++launch)
    for (const auto& [thread, tile] : tile_of_each_thread(pool)) {
      CAPTURE(thread, tile);
      REQUIRE((thread < 2) == (tile < 2));
    }
}

TEST_CASE("thread pool on nodes: a thread takes the tiles of a node whose threads are busy") {
  ThreadPool pool(2, {.threads = {1, 1}, .bind = {}});
  constexpr std::uint32_t kTiles = 40;
  std::atomic<std::uint32_t> by_caller{0};
  std::atomic<bool> other_is_busy{false};
  std::latch rest_is_done(1);
  pool.run(kTiles, [&](std::uint32_t thread, std::uint32_t) {
    if (thread == 1) {
      other_is_busy = true;
      rest_is_done.wait();  // all other tiles, of both nodes
      return true;
    }
    while (!other_is_busy) std::this_thread::yield();
    if (by_caller.fetch_add(1) + 1 == kTiles - 1) rest_is_done.count_down();
    return true;
  });
  CHECK(by_caller == kTiles - 1);
}

TEST_CASE("thread pool on nodes: a thread whose work returns false takes no tile of any node") {
  ThreadPool pool(3, {.threads = {1, 2}, .bind = {}});
  std::vector<std::atomic<int>> taken(3);
  pool.run(1000, [&](std::uint32_t thread, std::uint32_t) {
    taken[thread].fetch_add(1);
    return false;
  });
  for (const auto& count : taken) CHECK(count <= 1);
}

TEST_CASE("thread pool on nodes: each thread that the pool starts is bound once, to its node") {
  std::vector<std::pair<std::thread::native_handle_type, std::uint32_t>> bound;
  const auto bind = [&](std::thread::native_handle_type thread, std::uint32_t node) {
    bound.emplace_back(thread, node);
  };
  ThreadPool pool(5, {.threads = {2, 3}, .bind = bind});
  std::vector<std::uint32_t> nodes;
  for (const auto& [thread, node] : bound) nodes.push_back(node);
  CHECK(nodes == std::vector<std::uint32_t>{0, 1, 1, 1});
  std::ranges::sort(bound);
  CHECK(std::ranges::adjacent_find(bound, {}, [](const auto& each) { return each.first; }) ==
        bound.end());
  CHECK(pool.threads_on_node_of(0) == 2);
  CHECK(pool.threads_on_node_of(4) == 3);
}

TEST_CASE("thread pool on nodes: with one node nothing is bound") {
  int calls = 0;
  const auto bind = [&](std::thread::native_handle_type, std::uint32_t) { ++calls; };
  ThreadPool pool(3, {.threads = {3}, .bind = bind});
  CHECK(calls == 0);
  CHECK(pool.threads_on_node_of(2) == 3);
}

}  // namespace leasehold::node_tiles_test
