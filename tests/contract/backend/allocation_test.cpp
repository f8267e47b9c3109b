/// No step of the CPU backend allocates once its shape has run. In a program of its own, because it
/// replaces operator new.
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <new>

#include "tests/contract/backend/dense_layer.hpp"

namespace {

std::atomic<std::uint64_t> allocations{0};

void* counted(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) {
  return counted(size);
}
void* operator new[](std::size_t size) {
  return counted(size);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace leasehold::testing {

TEST_CASE("allocation: a layer allocates nothing, for few rows and for many") {
  const std::uint32_t threads = GENERATE(1, 2);
  const std::uint32_t n_rows = GENERATE(1, 40);
  Rig rig(threads);
  DenseLayer layer(test_seed() + 2500, {n_rows, 1, 1}, {280, 300, 33});
  std::uint64_t in_step = 0;
  for (int step = 0; step < 3; ++step) {
    const auto gates = rig.table.step(3);
    const std::uint64_t before = allocations.load();
    layer.run(*rig.backend, *gates);
    in_step = allocations.load() - before;
  }
  CAPTURE(threads, n_rows);
  REQUIRE(allocations.load() > 0);
  REQUIRE(in_step == 0);
}

TEST_CASE("allocation: a matmul of experts allocates nothing") {
  const std::uint32_t threads = GENERATE(0, 1, 2);
  const MatrixLayout layout = GENERATE(MatrixLayout::Rows, MatrixLayout::RowGroups);
  constexpr std::uint32_t kExperts = 4;
  SeededRandom random(test_seed() + 2600);
  Rig rig(threads);
  const GroupedMatrix weight(random, TensorType::Q8_0, kExperts * kGroupRows, 64);
  const std::vector<std::uint32_t> chosen(std::size_t{kLimits.max_rows} * kLimits.n_experts_used);
  const std::vector<float> x = random_floats(random, chosen.size() * 64);
  std::vector<float> out(chosen.size() * kGroupRows);
  const auto gates = rig.table.step(1);
  const std::vector<RowRef> rows = rows_of({kLimits.max_rows}, {kLimits.max_rows});
  const std::uint64_t before = allocations.load();
  const LaunchStatus status = rig.backend->expert_matmul(
      {.gates = gates.get(), .rows = rows, .layer = 1},
      {.site = LaunchSite::ExpertUp,
       .weight = layout == MatrixLayout::Rows ? weight.rows.view() : weight.view(),
       .n_experts = kExperts,
       .chosen = chosen.data(),
       .n_items = static_cast<std::uint32_t>(chosen.size()),
       .x = x.data(),
       .items_per_x = 1,
       .out = out.data()});
  const std::uint64_t in_step = allocations.load() - before;
  CAPTURE(threads, layout == MatrixLayout::Rows);
  REQUIRE(status.live == gates->all());
  REQUIRE(in_step == 0);
}

}  // namespace leasehold::testing
