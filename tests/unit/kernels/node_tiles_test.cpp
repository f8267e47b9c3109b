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
  CHECK(NodeShares().nodes() == 0);
}

TEST_CASE("tile passes: counts add up, and what exceeds the limit joins the last pass") {
  CHECK(TilePasses().count() == 0);
  CHECK(TilePasses().ends().empty());
  CHECK(TilePasses(7).count() == 7);
  TilePasses many;
  for (int i = 0; i < 20; ++i) many.add(3);
  CHECK(many.count() == 60);
  REQUIRE(many.ends().size() == TilePasses::kMost);
  CHECK(many.ends()[6] == 21);
  CHECK(many.ends()[7] == 60);
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

TEST_CASE("node tiles: every tile is taken exactly once, with any shares and passes") {
  for (const Threads& threads : {Threads{1, 1}, Threads{2, 1}, Threads{1, 4, 2}, Threads{31, 32}})
    for (const auto& counts : std::vector<std::vector<std::uint32_t>>{
             {}, {1}, {2}, {100}, {0, 5}, {7, 1, 1}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 30}}) {
      NodeTiles tiles{NodeShares(threads)};
      const TilePasses passes = passes_of(counts);
      tiles.begin(passes);
      std::vector<int> taken(passes.count());
      for (std::uint32_t node = 0; node < threads.size(); ++node)
        for (const std::uint32_t tile : all_of(tiles, node)) ++taken[tile];
      CAPTURE(threads, counts);
      REQUIRE(taken == std::vector<int>(passes.count(), 1));
    }
}

TEST_CASE("tiling: the passes of a matmul are those of its groups of batch rows") {
  for (const std::uint32_t n_batch : {1u, 8u, 64u, 250u}) {
    const MatmulTiles tiles =
        MatmulTiles::plan(600, 4864, n_batch, {.tile_macs = 500'000, .macs_per_output = 37'000});
    const TilePasses passes = tiles.passes();
    REQUIRE(passes.count() == tiles.count());
    std::vector<std::uint32_t> first_rows;  // of each pass but the first
    for (std::uint32_t t = 1; t < tiles.count(); ++t)
      if (tiles.outputs(t).begin == 0 && tiles.outputs(t - 1).begin != 0) first_rows.push_back(t);
    CAPTURE(n_batch);
    for (std::size_t p = 0; p + 1 < passes.ends().size(); ++p)
      CHECK(passes.ends()[p] == first_rows.at(p));
    CHECK(passes.ends().size() == std::min<std::size_t>(first_rows.size() + 1, TilePasses::kMost));
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
  CHECK(pool.threads_beside(0) == 2);
  CHECK(pool.threads_beside(4) == 3);
}

TEST_CASE("thread pool on nodes: with one node nothing is bound") {
  int calls = 0;
  const auto bind = [&](std::thread::native_handle_type, std::uint32_t) { ++calls; };
  ThreadPool pool(3, {.threads = {3}, .bind = bind});
  CHECK(calls == 0);
  CHECK(pool.threads_beside(2) == 3);
}

}  // namespace leasehold::node_tiles_test
