/// The runner detects and names errors of kernels; tests choose the order.
#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <numeric>
#include <vector>

#include "tests/support/child_process.hpp"
#include "tests/support/simt/runner.hpp"
#include "tests/unit/support/simt/kernels.hpp"

namespace leasehold::simt {
namespace {

using Catch::Contains;

struct Sizes {
  std::uint32_t blocks = 1;
  unsigned threads = 32;
  std::uint32_t shared_bytes = 0;
};

Result<void> run_words(const char* kernel, const Words& words, Sizes sizes = {}) {
  return run({.kernel = kernel,
              .grid = {.x = sizes.blocks},
              .block_threads = sizes.threads,
              .shared_bytes = sizes.shared_bytes,
              .params = cuda::KernelParams(words)});
}

std::vector<std::uint32_t> ascending(std::size_t n) {
  std::vector<std::uint32_t> words(n);
  std::iota(words.begin(), words.end(), 0u);
  return words;
}

TEST_CASE("simt: writes to shared memory are visible after the barrier") {
  const auto in = ascending(512);
  std::vector<std::uint32_t> out(512);
  REQUIRE(run_words("lh_test_reverse", {in.data(), out.data(), 0}, {.blocks = 2, .threads = 256}));
  for (std::uint32_t i = 0; i < 512; ++i) REQUIRE(out[i] == i / 256 * 256 + 255 - i % 256);
}

TEST_CASE("simt: without its barrier a kernel reads unwritten shared memory") {
  set_order_seed(0);
  const auto in = ascending(64);
  std::vector<std::uint32_t> out(64);
  REQUIRE(run_words("lh_test_reverse_early", {in.data(), out.data(), 0},
                    {.threads = 64, .shared_bytes = 256}));
  CHECK(out[0] == 0xFFFF'FFFF);
}

TEST_CASE("simt: an error names the kernel and block of a barrier that some threads never reach") {
  set_order_seed(0);
  const auto result = run_words("lh_test_divergent_barrier", {}, {.blocks = 3, .threads = 64});
  REQUIRE_FALSE(result);
  CHECK(result.error().code == Errc::DeviceFault);
  CHECK_THAT(result.error().detail, Contains("lh_test_divergent_barrier, block (0, 0, 0)"));
  CHECK_THAT(result.error().detail, Contains("32 of 64 have ended"));
  CHECK_THAT(result.error().detail, Contains("__syncthreads"));
}

TEST_CASE("simt: a shuffle that a lane in its mask never reaches is an error") {
  const auto in = ascending(32);
  std::vector<std::uint32_t> out(32);
  const auto result = run_words("lh_test_divergent_shuffle", {in.data(), out.data(), 0});
  REQUIRE_FALSE(result);
  CHECK_THAT(result.error().detail, Contains("waits at a shuffle with mask 0xffffffff"));
}

TEST_CASE("simt: a shuffle from a lane outside its mask is an error") {
  const auto in = ascending(32);
  std::vector<std::uint32_t> out(32);
  const auto result = run_words("lh_test_absent_lane", {in.data(), out.data(), 0});
  REQUIRE_FALSE(result);
  CHECK_THAT(result.error().detail, Contains("reads lane 20"));
}

TEST_CASE("simt: a kernel runs after another one failed") {
  REQUIRE_FALSE(run_words("lh_test_divergent_barrier", {}, {.threads = 64}));
  const auto in = ascending(64);
  std::vector<std::uint32_t> out(64);
  REQUIRE(run_words("lh_test_reverse", {in.data(), out.data(), 0}, {.threads = 64}));
  CHECK(out[0] == 63);
}

TEST_CASE("simt: dynamic shared memory is full of NaNs, and its end is guarded") {
  std::vector<std::uint32_t> out(32);
  REQUIRE(run_words("lh_test_first_word", {nullptr, out.data(), 0}, {.shared_bytes = 128}));
  CHECK(out == std::vector<std::uint32_t>(32, 0xFFFF'FFFF));
  REQUIRE(run_words("lh_test_writes_behind", {nullptr, nullptr, 0}, {.shared_bytes = 32}));
  // AddressSanitizer ends a process that writes there.
  const auto end = testing::run_in_child([] {
    const auto result =
        run_words("lh_test_writes_behind", {nullptr, nullptr, 1}, {.shared_bytes = 32});
    if (!result) std::fputs(result.error().detail.c_str(), stderr);
    return result ? 0 : 1;
  });
  CHECK(end.exit_code == 1);
  CHECK_THAT(end.error_output,
             Contains("behind the dynamic shared memory") || Contains("use-after-poison"));
}

#if defined(__SANITIZE_ADDRESS__)
TEST_CASE("simt: AddressSanitizer knows where shared memory and parameters end") {
  std::vector<std::uint32_t> out(32);
  const auto behind_shared = testing::run_in_child([&] {
    return run_words("lh_test_first_word", {nullptr, out.data(), 0}, {.shared_bytes = 124}) ? 0 : 2;
  });
  CHECK_THAT(behind_shared.error_output, Contains("use-after-poison"));
  const auto behind_params = testing::run_in_child(
      [&] { return run_words("lh_test_reads_behind_params", {nullptr, out.data(), 0}) ? 0 : 2; });
  CHECK_THAT(behind_params.error_output, Contains("heap-buffer-overflow"));
}
#endif

TEST_CASE("simt: a seed permutes the blocks") {
  set_order_seed(0);
  std::vector<std::uint32_t> out(101);
  REQUIRE(run_words("lh_test_order", {nullptr, out.data(), 100}, {.blocks = 100}));
  std::vector<std::uint32_t> expected = ascending(100);
  CHECK(std::equal(expected.begin(), expected.end(), out.begin()));
  set_order_seed(7);
  std::vector<std::uint32_t> permuted(101);
  const auto result = run_words("lh_test_order", {nullptr, permuted.data(), 100}, {.blocks = 100});
  set_order_seed(0);
  REQUIRE(result);
  CHECK_FALSE(std::equal(expected.begin(), expected.end(), permuted.begin()));
  CHECK(
      std::is_permutation(expected.begin(), expected.end(), permuted.begin(), permuted.end() - 1));
}

TEST_CASE("simt: blocks descend if asked, and a hook runs before each") {
  std::vector<std::uint32_t> out(6), seen;
  set_order_seed(kDescendingOrder);
  set_block_hook([&](std::uint64_t n_run) { seen.push_back(out[5] * 10 + unsigned(n_run)); });
  const auto result = run_words("lh_test_order", {nullptr, out.data(), 5}, {.blocks = 5});
  set_block_hook({});
  set_order_seed(0);
  REQUIRE(result);
  CHECK(out == std::vector<std::uint32_t>{4, 3, 2, 1, 0, 5});
  CHECK(seen == std::vector<std::uint32_t>{0, 11, 22, 33, 44});
}

TEST_CASE("simt: a hook gets each load of words from shared memory, by thread") {
  struct Load {
    unsigned thread;
    std::size_t size_bytes;
    bool operator==(const Load&) const = default;
  };
  std::vector<Load> loads;
  std::vector<std::uint32_t> out(4);
  set_order_seed(0);
  set_load_hook([&](unsigned thread, const std::byte*, std::size_t size_bytes) {
    loads.push_back({thread, size_bytes});
  });
  const auto result = run_words("lh_test_loads_shared", {nullptr, out.data(), 0},
                                {.threads = 2, .shared_bytes = 16});
  set_load_hook({});
  REQUIRE(result);
  CHECK(loads == std::vector<Load>{{0, 4}, {0, 8}, {1, 4}, {1, 8}});
}

TEST_CASE("simt: a copy to shared memory arrives at its wait, not before") {
  alignas(16) const std::array<std::uint32_t, 8> in{1, 2, 3, 4, 5, 6, 7, 8};
  const std::uint32_t no = 0xFFFF'FFFF;
  std::vector<std::uint32_t> out(6 * 32);
  set_order_seed(0);
  REQUIRE(run_words("lh_test_copy", {in.data(), out.data(), 0}, {.shared_bytes = 1024}));
  out.resize(6);
  CHECK(out == std::vector<std::uint32_t>{no, no, 1, no, 1, 5});
  out.resize(6 * 32);
  set_order_seed(2);  // early copies
  const auto result = run_words("lh_test_copy", {in.data(), out.data(), 0}, {.shared_bytes = 1024});
  set_order_seed(0);
  REQUIRE(result);
  out.resize(6);
  CHECK(out == std::vector<std::uint32_t>{1, 5, 1, 5, 1, 5});
}

Result<void> run_group(const char* kernel, const Product& params) {
  return run({.kernel = kernel,
              .grid = {},
              .block_threads = 128,
              .shared_bytes = 256,
              .params = cuda::KernelParams(params)});
}

TEST_CASE("simt: a thread that ends before its wgmma is done is an error") {
  const auto result = run_group("lh_test_wgmma_unwaited", {});
  REQUIRE_FALSE(result);
  CHECK_THAT(result.error().detail, Contains("without waiting"));
}

TEST_CASE("simt: a wgmma needs a fence of its registers since the last wait") {
  const auto result = run_group("lh_test_wgmma_unfenced", {});
  REQUIRE_FALSE(result);
  CHECK_THAT(result.error().detail, Contains("without wgmma_fence"));
}

TEST_CASE("simt: a wgmma reads copies only after a fence by the copying thread") {
  alignas(16) const std::array<std::uint16_t, 8> b{};
  for (const std::uint64_t seed : {0u, 2u}) {  // late and early copies
    set_order_seed(seed);
    const auto hidden = run_group("lh_test_wgmma_copied", {nullptr, b.data(), nullptr, 0});
    const auto shown = run_group("lh_test_wgmma_copied", {nullptr, b.data(), nullptr, 1});
    set_order_seed(0);
    REQUIRE_FALSE(hidden);
    CHECK_THAT(hidden.error().detail, Contains("fence_proxy_async in thread 77"));
    CHECK(shown);
  }
}

TEST_CASE("simt: a launch with more threads than the kernel allows is refused") {
  CHECK_FALSE(run_words("lh_test_first_word", {}, {.threads = 64}));
  CHECK_FALSE(run_words("lh_test_none", {}));
}

}  // namespace
}  // namespace leasehold::simt
