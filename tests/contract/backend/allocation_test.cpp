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

}  // namespace leasehold::testing
