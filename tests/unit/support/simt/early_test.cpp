/// Barriers in shared memory, bulk copies, and kernels that start before the previous one has
/// ended.
#include <catch2/catch.hpp>
#include <numeric>
#include <utility>
#include <vector>

#include "tests/support/simt/runner.hpp"
#include "tests/unit/support/simt/kernels.hpp"

namespace leasehold::simt {
namespace {

using Catch::Contains;

constexpr std::uint32_t kNan = 0xFFFF'FFFF;
constexpr std::uint32_t kUnits = 7;
constexpr std::uint64_t kEverySeed[] = {0, 1, 2, 3, kDescendingOrder};
/// Their copies land late, and at once.
constexpr std::uint64_t kLateAndEarly[] = {0, 2};

struct alignas(16) Aligned {
  std::uint32_t words[8 * kUnits];
};

Result<void> run_words(const char* kernel, const Words& words, unsigned threads,
                       std::uint64_t seed) {
  set_order_seed(seed);
  auto result = run({.kernel = kernel,
                     .grid = {.x = 2},
                     .block_threads = threads,
                     .shared_bytes = 1024,
                     .params = cuda::KernelParams(words)});
  set_order_seed(0);
  return result;
}

/// The sums of a ring, or its failure.
std::string sums_of(const char* kernel, std::uint64_t seed, std::uint32_t units = kUnits) {
  Aligned in;
  std::iota(std::begin(in.words), std::end(in.words), 1u);
  std::vector<std::uint32_t> out(16);
  const auto result = run_words(kernel, {in.words, out.data(), units}, 96, seed);
  if (!result) return result.error().detail;
  for (std::uint32_t i = 0; i < 16; ++i) {
    std::uint32_t sum = 0;
    for (std::uint32_t unit = 0; unit < units; ++unit) sum += in.words[8 * unit + i % 8];
    if (out[i] != sum) return "other sums";
  }
  return "right sums";
}

TEST_CASE("simt: a ring of bulk copies adds every unit once, in any order") {
  for (const std::uint64_t seed : kEverySeed) {
    for (std::uint32_t units = 0; units <= kUnits; ++units) {
      CAPTURE(seed, units);
      CHECK(sums_of("lh_test_ring", seed, units) == "right sums");
    }
  }
}

TEST_CASE("simt: a bulk copy is not there before the wait for its phase") {
  CHECK(sums_of("lh_test_ring_read_early", 0) != "right sums");
}

TEST_CASE("simt: a bulk copy may overwrite a place at once that threads still read") {
  CHECK(sums_of("lh_test_ring_filled_early", 3) != "right sums");
}

TEST_CASE("simt: a phase that expects fewer bytes than its bulk copies is an error") {
  for (const std::uint64_t seed : kLateAndEarly)
    CHECK_THAT(sums_of("lh_test_ring_expects_less", seed),
               Contains("16 bytes more than the phase expects"));
}

TEST_CASE("simt: a block that ends before it waited for each bulk copy is an error") {
  for (const std::uint64_t seed : kLateAndEarly)
    CHECK_THAT(sums_of("lh_test_ring_last_unawaited", seed),
               Contains("ends without barrier_wait for its bulk copies of phase"));
}

TEST_CASE("simt: a wait for a phase that cannot end names what the phase lacks") {
  const Aligned in{};
  for (const std::uint64_t seed : kLateAndEarly) {
    const auto result = run_words("lh_test_phase_never_ends", {in.words, nullptr, 64}, 32, seed);
    REQUIRE_FALSE(result);
    CHECK_THAT(
        result.error().detail,
        Contains("thread 0 waits at barrier_wait: phase 0 lacks 1 of 2 arrivals and 0 bytes"));
  }
}

TEST_CASE("simt: a bulk copy of a size or from an address that 16 does not divide is an error") {
  const Aligned in{};
  const auto size = run_words("lh_test_phase_never_ends", {in.words, nullptr, 40}, 32, 0);
  REQUIRE_FALSE(size);
  CHECK_THAT(size.error().detail, Contains("bulk_copy of 40 bytes"));
  CHECK_FALSE(run_words("lh_test_phase_never_ends", {in.words + 1, nullptr, 64}, 32, 0));
}

TEST_CASE("simt: a barrier is used after a __syncthreads, and nothing else writes its memory") {
  const auto unsynchronised = run_words("lh_test_barrier_unsynchronised", {}, 64, 0);
  REQUIRE_FALSE(unsynchronised);
  CHECK_THAT(unsynchronised.error().detail, Contains("without __syncthreads"));
  const auto overwritten = run_words("lh_test_barrier_overwritten", {}, 32, 0);
  REQUIRE_FALSE(overwritten);
  CHECK_THAT(overwritten.error().detail, Contains("memory was overwritten"));
}

/// The output of the previous kernel, 1 … 32, which is not there at first.
struct PreviousOutput {
  explicit PreviousOutput(std::vector<std::uint32_t> before = {}) {
    std::iota(std::begin(in.words), std::begin(in.words) + 32, 1u);
    const auto old = std::as_bytes(std::span(before));
    set_predecessor({{.memory = std::as_writable_bytes(std::span(in.words).first(32)),
                      .before = {old.begin(), old.end()}}});
  }
  PreviousOutput(const PreviousOutput&) = delete;
  PreviousOutput& operator=(const PreviousOutput&) = delete;
  ~PreviousOutput() { set_predecessor({}); }

  Aligned in{};
};

TEST_CASE("simt: the previous kernel's output is NaN until a thread has waited for that kernel") {
  PreviousOutput previous;
  for (const std::uint64_t seed : kEverySeed) {
    std::vector<std::uint32_t> out(64);
    REQUIRE(run_words("lh_test_early", {previous.in.words, out.data(), 32}, 32, seed));
    const bool at_once = (seed & 2) != 0;
    for (std::uint32_t i = 0; i < 32; ++i) {
      CAPTURE(seed, i);
      CHECK(out[2 * i] == (at_once ? i + 1 : kNan));
      CHECK(out[2 * i + 1] == i + 1);
    }
  }
}

TEST_CASE("simt: a word that a copy from the host changes meanwhile holds its old value") {
  PreviousOutput previous(std::vector<std::uint32_t>(32, 7));
  std::vector<std::uint32_t> out(64);
  REQUIRE(run_words("lh_test_early", {previous.in.words, out.data(), 32}, 32, 0));
  CHECK(out[0] == 7);
  CHECK(out[1] == 1);
}

TEST_CASE("simt: a thread of an early kernel that ends without a wait is an error") {
  PreviousOutput previous;
  for (const std::uint64_t seed : kLateAndEarly) {
    std::vector<std::uint32_t> out(64);
    const auto result = run_words("lh_test_early", {previous.in.words, out.data(), 31}, 32, seed);
    REQUIRE_FALSE(result);
    CHECK_THAT(result.error().detail, Contains("thread 31: ends without await_previous_kernel"));
  }
  CHECK(previous.in.words[0] == 1);
}

TEST_CASE("simt: a bulk copy of the previous kernel's output before the wait copies NaNs") {
  PreviousOutput previous;
  std::vector<std::uint32_t> out(32);
  REQUIRE(run_words("lh_test_early_copy", {previous.in.words, out.data(), 0}, 32, 0));
  CHECK(out == std::vector<std::uint32_t>(32, kNan));
}

TEST_CASE("simt: the previous kernel's stores replace those before the wait") {
  PreviousOutput previous;
  REQUIRE(run_words("lh_test_early_store", {nullptr, previous.in.words, 99}, 32, 0));
  CHECK(previous.in.words[5] == 6);
}

}  // namespace
}  // namespace leasehold::simt
