#include "kernels/cpu/thread_pool.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <latch>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "common/machine/text_file.hpp"
#include "kernels/cpu/tiling.hpp"
#include "tests/support/test_paths.hpp"

namespace leasehold {

TEST_CASE("thread pool: every launch runs every tile exactly once") {
  const std::uint32_t threads = GENERATE(1, 2, 3, 5);
  ThreadPool pool(threads);
  REQUIRE(pool.threads() == threads);
  for (int launch = 0; launch < 2000; ++launch) {
    const auto n_tiles = static_cast<std::uint32_t>(launch % 67);
    std::array<std::atomic<int>, 67> done{};
    std::array<int, 67> plain{};  // written by workers; reading it after run checks visibility
    pool.run(n_tiles, [&](std::uint32_t thread, std::uint32_t tile) {
      plain[tile] = launch + (thread < threads ? 1 : 0);
      done[tile].fetch_add(1);
      return true;
    });
    int wrong = 0;
    for (std::uint32_t tile = 0; tile < 67; ++tile)
      wrong +=
          done[tile] != (tile < n_tiles ? 1 : 0) || (tile < n_tiles && plain[tile] != launch + 1);
    CAPTURE(threads, launch);
    REQUIRE(wrong == 0);
  }
}

TEST_CASE("thread pool: workers take part, and the caller is thread 0") {
  ThreadPool pool(3);
  std::latch all_started(3);  // a tile ends only when three threads run one
  std::array<std::atomic<int>, 3> seen{};
  pool.run(3, [&](std::uint32_t thread, std::uint32_t) {
    seen[thread].fetch_add(1);
    all_started.arrive_and_wait();
    return true;
  });
  REQUIRE((seen[0] == 1 && seen[1] == 1 && seen[2] == 1));
}

TEST_CASE("thread pool: sleeping workers wake for the next launch") {
  ThreadPool pool(2);
  for (int round = 0; round < 3; ++round) {
    // Longer than the spin, so that the worker usually sleeps; the test holds even if it does not.
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(2);
    while (std::chrono::steady_clock::now() < until) std::this_thread::yield();
    std::latch both(2);
    pool.run(2, [&](std::uint32_t, std::uint32_t) {
      both.arrive_and_wait();
      return true;
    });
  }
  SUCCEED("three launches ended, each with both threads");
}

TEST_CASE("thread pool: a caller that waits for a worker's tile sleeps") {
  ThreadPool pool(2);
  std::atomic<bool> worker_has_tile{false};
  std::latch caller_sleeps(1);
  const std::string status = "/proc/self/task/" + std::to_string(::gettid()) + "/status";
  bool slept = false;
  std::thread observer([&] {
    while (!worker_has_tile) std::this_thread::yield();
    slept = eventually([&] {
      return read_text_file(status, 1 << 16).value_or("").find("State:\tS") != std::string::npos;
    });
    caller_sleeps.count_down();
  });
  pool.run(2, [&](std::uint32_t thread, std::uint32_t) {
    if (thread == 0) {
      while (!worker_has_tile) std::this_thread::yield();
    } else {
      worker_has_tile = true;
      caller_sleeps.wait();
    }
    return true;
  });
  observer.join();
  CHECK(slept);
}

TEST_CASE("thread pool: a thread whose work returns false takes no more tiles") {
  ThreadPool pool(3);
  std::array<std::atomic<int>, 3> taken{};
  pool.run(1000, [&](std::uint32_t thread, std::uint32_t) {
    taken[thread].fetch_add(1);
    return false;
  });
  for (const auto& count : taken) REQUIRE(count <= 1);
}

TEST_CASE("tiling: matmul tiles cover each output of each batch row once, within the cost limit") {
  for (const std::uint32_t n_out : {1u, 7u, 512u, 3000u})
    for (const std::uint32_t n_in : {1u, 64u, 896u, 4096u, 14336u, 200'000u})
      for (const std::uint32_t n_batch : {1u, 5u, 64u, 256u}) {
        const MatmulTiles tiles = MatmulTiles::plan(
            n_out, n_in, n_batch,
            {.tile_macs = kTileMacs, .macs_per_output = n_in, .outputs_at_once = 12});
        std::vector<int> covered(std::size_t{n_out} * n_batch);
        std::uint64_t max_cost = 0;
        for (std::uint32_t t = 0; t < tiles.count(); ++t) {
          const Span32 outputs = tiles.outputs(t);
          const Span32 batch = tiles.batch(t);
          for (std::uint32_t o = outputs.begin; o < outputs.end; ++o)
            for (std::uint32_t i = batch.begin; i < batch.end; ++i)
              ++covered[std::size_t{o} * n_batch + i];
          const std::uint64_t cells =
              std::uint64_t{outputs.end - outputs.begin} * (batch.end - batch.begin);
          max_cost = std::max(max_cost, cells * n_in);
        }
        CAPTURE(n_out, n_in, n_batch);
        REQUIRE(std::ranges::count(covered, 1) == std::ssize(covered));
        REQUIRE(max_cost <= std::max<std::uint64_t>(kTileMacs, n_in));
      }
}

TEST_CASE("tiling: a matrix passes once for as many batch rows as the cache holds") {
  constexpr std::uint32_t kOut = 600;
  constexpr std::uint32_t kIn = 4864;
  constexpr std::uint32_t kBatch = 64;
  const MatmulTiles tiles = MatmulTiles::plan(
      kOut, kIn, kBatch, {.tile_macs = 500'000, .macs_per_output = 37'000, .outputs_at_once = 6});
  REQUIRE(tiles.batch_per_tile == 8);
  std::uint32_t passes = 0;
  std::set<std::uint32_t> inputs;  // of a pass
  for (std::uint32_t t = 0; t < tiles.count(); ++t) {
    if (tiles.outputs(t).begin == 0 && (t == 0 || tiles.outputs(t - 1).begin != 0)) {
      ++passes;
      inputs.clear();
    }
    for (std::uint32_t i = tiles.batch(t).begin; i < tiles.batch(t).end; ++i) inputs.insert(i);
    REQUIRE(inputs.size() * kIn * sizeof(float) <= kCachedInputBytes);
  }
  REQUIRE(passes == 3);  // 24, 24 and 16 rows
}

TEST_CASE("tiling: tiles have whole groups of the matrix rows that are multiplied at once") {
  const MatmulTiles::Costs costs{
      .tile_macs = 500'000, .macs_per_output = 3418, .outputs_at_once = kDotOutputs};
  for (const std::uint32_t n_batch : {13u, 32u, 512u}) {
    const MatmulTiles tiles = MatmulTiles::plan(4864, 896, n_batch, costs);
    CAPTURE(n_batch);
    REQUIRE(tiles.outputs_at_once == kDotOutputs);
    REQUIRE(tiles.outputs_per_tile % kDotOutputs == 0);
  }
}

}  // namespace leasehold
