#include "kernels/cpu/row_kernels.hpp"

#include <catch2/catch.hpp>

namespace leasehold {

TEST_CASE("row kernels: a path's name is the one of --simd, and no other text is") {
  for (const SimdPath path : kSimdPaths) CHECK(simd_path_from_name(name(path)) == path);
  for (const char* other : {"", "auto", "avx", "avxvnni", "AVX2", "amx-int8"})
    CHECK_FALSE(simd_path_from_name(other));
}

TEST_CASE("row kernels: a CPU uses the last path that it has and that passes its self-check") {
  CHECK(cpu_has(SimdPath::Scalar));
  CHECK(cpu_has(best_simd_path()));
  for (const SimdPath path : kSimdPaths) {
    if (!cpu_has(path))
      WARN("this CPU has no " << name(path) << " (it lacks " << missing_for(path)
                              << "); no test runs it");
    if (path > best_simd_path()) CHECK_FALSE((cpu_has(path) && passes_self_check(path)));
  }
}

#ifdef __x86_64__
TEST_CASE("row kernels: AVX-VNNI changes nothing but the dots of bytes") {
  const RowKernels& avx2 = row_kernels(SimdPath::Avx2);
  RowKernels avx_vnni = row_kernels(SimdPath::AvxVnni);
  CHECK(avx_vnni.dot_groups_int8 != avx2.dot_groups_int8);
  avx_vnni.dot_groups_int8 = avx2.dot_groups_int8;
  CHECK((avx_vnni == avx2));
}
#endif

}  // namespace leasehold
