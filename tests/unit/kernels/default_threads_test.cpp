#include "kernels/cpu/default_threads.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <thread>

#include "common/machine/cpu_set.hpp"

namespace leasehold {

TEST_CASE("default threads: one per core, as many as have a gate") {
  CHECK(default_threads({.cores = 1}) == 1);
  CHECK(default_threads({.cores = 2}) == 2);
  CHECK(default_threads({.cores = 4}) == 4);
  CHECK(default_threads({.cores = 63}) == 63);
  CHECK(default_threads({.cores = 64}) == 63);
  CHECK(default_threads({.cores = 1024}) == 63);
}

TEST_CASE("default threads: a quota for less than the cores leaves one of them to other threads") {
  CHECK(default_threads({.cores = 8, .quota = 4.0}) == 3);
  CHECK(default_threads({.cores = 8, .quota = 2.5}) == 2);
  CHECK(default_threads({.cores = 8, .quota = 2.0}) == 1);
  CHECK(default_threads({.cores = 8, .quota = 1.0}) == 1);
  CHECK(default_threads({.cores = 8, .quota = 0.2}) == 1);
  CHECK(default_threads({.cores = 200, .quota = 50.0}) == 49);
}

TEST_CASE("default threads: a quota that the cores cannot use up changes nothing") {
  CHECK(default_threads({.cores = 2, .quota = 2.0}) == 2);
  CHECK(default_threads({.cores = 2, .quota = 7.5}) == 2);
  CHECK(default_threads({.cores = 200, .quota = 100.0}) == 63);
}

TEST_CASE("default threads: cores count on which this thread may run") {
  const CpuSet all = CpuSet::of_this_thread();
  CHECK(usable_cpu().cores == all.count());
  int first = 0;
  while (!all.contains(CpuSet::parse(std::to_string(first)).value())) ++first;
  const ScopedCpuAffinity pinned(CpuSet::parse(std::to_string(first)).value());
  CHECK(usable_cpu().cores == 1);
}

TEST_CASE("default threads: where the kernel does not say which cores, those online count") {
  CHECK(usable_cpu(CpuSet()).cores == std::thread::hardware_concurrency());
}

}  // namespace leasehold
