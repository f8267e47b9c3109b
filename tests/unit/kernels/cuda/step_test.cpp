#include <catch2/catch.hpp>
#include <utility>

#include "kernels/cuda/plan/step_plan.hpp"
#include "tests/unit/kernels/cuda/device_step.hpp"

namespace leasehold::testing {
namespace {

std::vector<std::pair<std::uint64_t, std::uint32_t>>
    conditions;  // handle and value of each hook call

void tell(std::uint64_t handle, std::uint32_t value) {
  conditions.emplace_back(handle, value);
}

std::vector<std::byte> bytes_of(SeededRandom& random, std::size_t n) {
  std::vector<std::byte> bytes(n);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.below(256));
  return bytes;
}

}  // namespace

TEST_CASE("cuda: scattered pieces reach their addresses") {
  SeededRandom random(test_seed());
  DeviceStep step(rows_of({1}, {1}));
  const auto staging = bytes_of(random, 70000);
  const auto before = bytes_of(random, 70000);
  auto to = before;
  // Aligned and unaligned, long and short.
  std::vector<device::ScatterPiece> pieces{
      {0, 16, 40000},   {50000, 50000, 333}, {51003, 100, 77},  {60000, 60000, 5},
      {61008, 3, 4096}, {66000, 66000, 24},  {67008, 67000, 43}};
  for (device::ScatterPiece& piece : pieces) piece.to += reinterpret_cast<std::uint64_t>(to.data());
  const auto n_pieces = static_cast<std::uint32_t>(pieces.size());
  std::uint32_t counter = 0;
  const std::uint32_t n_first = GENERATE_COPY(0u, 5u, n_pieces);
  step.run(cuda::plan_scatter(
      {step.plan().gate, staging.data(), pieces.data(), &counter, n_first, n_pieces - n_first},
      40000));
  auto expected = before;
  for (const device::ScatterPiece& piece : pieces) {
    const auto from = staging.begin() + static_cast<std::ptrdiff_t>(piece.from_bytes);
    const auto at = piece.to - reinterpret_cast<std::uint64_t>(to.data());
    std::copy_n(from, piece.size_bytes, expected.begin() + static_cast<std::ptrdiff_t>(at));
  }
  REQUIRE(to == expected);
}

TEST_CASE("cuda: the last pieces of a scatter are written after all others") {
  SeededRandom random(test_seed());
  DeviceStep step(rows_of({1}, {1}));
  const auto staging = bytes_of(random, 40000);
  std::vector<std::byte> to(40000);
  const auto address = reinterpret_cast<std::uint64_t>(to.data());
  // Each last piece overlaps a first one, which has several blocks.
  const std::vector<device::ScatterPiece> pieces{{address, 0, 20000},
                                                 {address + 20000, 20000, 20000},
                                                 {address + 24, 3, 8},
                                                 {address + 39000, 100, 8}};
  std::uint32_t counter = 0;
  step.run(
      cuda::plan_scatter({step.plan().gate, staging.data(), pieces.data(), &counter, 2, 2}, 20000));
  auto expected = staging;
  std::copy_n(staging.begin() + 3, 8, expected.begin() + 24);
  std::copy_n(staging.begin() + 100, 8, expected.begin() + 39000);
  REQUIRE(to == expected);
}

TEST_CASE("cuda: a stopped engine scatters nothing") {
  SeededRandom random(test_seed());
  DeviceStep step(rows_of({1}, {1}));
  step.mirror.engine_stopped = 1;
  const auto staging = bytes_of(random, 64);
  std::vector<std::byte> to(64);
  const auto address = reinterpret_cast<std::uint64_t>(to.data());
  const std::vector<device::ScatterPiece> pieces{{address, 0, 32}, {address + 32, 32, 8}};
  std::uint32_t counter = 0;
  step.run(
      cuda::plan_scatter({step.plan().gate, staging.data(), pieces.data(), &counter, 1, 1}, 32));
  CHECK(to == std::vector<std::byte>(64));
  CHECK(counter == 0);
}

TEST_CASE("cuda: a segment gate reports the epoch it saw and sets the next condition") {
  for (const bool is_stopped : {false, true}) {
    DeviceStep step(rows_of({1}, {1}));
    step.mirror.engine_stopped = is_stopped ? 1 : 0;
    step.mirror.epoch = 41;
    conditions.clear();
    simt::set_condition_hook(&tell);
    std::uint64_t seen = 0;
    step.run(cuda::plan_segment_gate({step.plan().gate, &seen, 99, 3}));
    REQUIRE(seen == (std::uint64_t{41} << 32 | 3));
    REQUIRE(conditions ==
            std::vector<std::pair<std::uint64_t, std::uint32_t>>{{99, is_stopped ? 0 : 1}});
    step.run(cuda::plan_segment_gate({step.plan().gate, &seen, 0, 4}));
    simt::set_condition_hook(nullptr);
    REQUIRE(seen == (std::uint64_t{41} << 32 | 4));
    REQUIRE(conditions.size() == 1);
  }
}

}  // namespace leasehold::testing
