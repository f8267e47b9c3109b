/// Which SIMD path the CPU backend uses, and how many threads.
#include "kernels/cpu/cpu_backend.hpp"
#include "tests/contract/backend/matmul_cases.hpp"
#include "tests/support/no_more_threads.hpp"

namespace leasehold::testing {
TEST_CASE("simd: a path that the CPU lacks is refused, with what it lacks") {
  for (const SimdPath path : kSimdPaths) {
    if (cpu_has(path)) continue;
    FakeTable table;
    const auto backend = CpuBackend::create(kLimits, table.gates(1), path);
    REQUIRE_FALSE(backend);
    CHECK(backend.error().code == Errc::BadRequest);
    CHECK_THAT(backend.error().detail,
               Catch::Contains("does not support " + std::string(name(path)) + ": it lacks " +
                               std::string(missing_for(path))));
  }
}

TEST_CASE("cpu backend: threads that cannot start are counted, with what to do") {
  FakeTable table;
  const NoMoreThreads full;
  const auto backend = CpuBackend::create(kLimits, table.gates(3));
  REQUIRE_FALSE(backend);
  CHECK(backend.error().code == Errc::SystemError);
  CHECK_THAT(backend.error().detail, Catch::StartsWith("cannot start 3 compute threads: ") &&
                                         Catch::Contains("use fewer --threads"));
}

}  // namespace leasehold::testing
