/// Shuffles, votes and atomics behave as the PTX ISA says.
#include <catch2/catch.hpp>
#include <numeric>
#include <vector>

#include "tests/support/simt/runner.hpp"
#include "tests/unit/support/simt/kernels.hpp"

namespace leasehold::simt {
namespace {

template <class Params>
void run_block(const char* kernel, const Params& params, unsigned threads,
               std::uint32_t blocks = 1) {
  const auto result = run({.kernel = kernel,
                           .grid = {.x = blocks},
                           .block_threads = threads,
                           .params = cuda::KernelParams(params)});
  if (!result) FAIL(result.error().detail);
}

std::vector<std::uint32_t> lanes_from(std::uint32_t first) {
  std::vector<std::uint32_t> words(32);
  std::iota(words.begin(), words.end(), first);
  return words;
}

TEST_CASE("simt: a butterfly of shuffles sums every warp") {
  std::vector<std::uint32_t> in(512);
  std::iota(in.begin(), in.end(), 1u);
  std::vector<std::uint32_t> out(16);
  run_block("lh_test_warp_sum", Words{in.data(), out.data(), 0}, 128, 4);
  for (std::size_t warp = 0; warp < 16; ++warp)
    CHECK(out[warp] == std::accumulate(in.begin() + static_cast<std::ptrdiff_t>(warp) * 32,
                                       in.begin() + static_cast<std::ptrdiff_t>(warp + 1) * 32,
                                       0u));
}

TEST_CASE("simt: shuffles stay within their segment") {
  const auto in = lanes_from(100);
  for (const std::uint32_t width : {32u, 8u}) {
    std::vector<std::uint32_t> out(64);
    run_block("lh_test_shuffles", Words{in.data(), out.data(), width}, 32);
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
      const std::uint32_t first = lane / width * width;
      CHECK(out[lane] == 100 + first + 3);
      CHECK(out[32 + lane] == 100 + (lane ^ 2));
    }
  }
}

TEST_CASE("simt: halves of a warp vote independently") {
  const auto in = lanes_from(0);
  std::vector<std::uint32_t> out(32);
  run_block("lh_test_votes", Words{in.data(), out.data(), 0}, 32);
  CHECK(out[0] == 0xAAAA);
  CHECK(out[15] == 0xAAAA);
  CHECK(out[16] == 0xAAAA0000);
}

TEST_CASE("simt: atomics count every thread once") {
  std::vector<std::uint32_t> in(64);
  std::iota(in.begin(), in.end(), 10u);
  std::vector<std::uint32_t> out{0};
  run_block("lh_test_count", Words{in.data(), out.data(), 50}, 64);
  CHECK(out[0] == 24);
}

}  // namespace
}  // namespace leasehold::simt
