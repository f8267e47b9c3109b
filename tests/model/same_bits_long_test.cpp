/// The same-bits matrix: every batch from 1 to 64 with its first, middle and last batch_index,
/// every chunking of the prompt, thread count, path, block placement, kv type and arithmetic. About
/// an hour on one core; label long.
#include <set>

#include "tests/model/matrix.hpp"

namespace leasehold::testing {
namespace {

constexpr Chunking kChunkings[] = {Chunking::OneByOne, Chunking::Whole, Chunking::Sixteens,
                                   Chunking::Random};

/// All variants of one batch size, path and thread count.
std::vector<Variant> variants_of(std::uint32_t batch) {
  std::vector<Variant> variants;
  for (const std::uint32_t batch_index : std::set{0u, batch / 2, batch - 1})
    for (const Chunking chunking : kChunkings)
      for (const bool scattered : {false, true})
        for (const KvType kv_type : {KvType::F16, KvType::F32, KvType::Q8_0})
          for (const Arithmetic arithmetic : {Arithmetic::F32, Arithmetic::Int8})
            variants.push_back({.kv_type = kv_type,
                                .arithmetic = arithmetic,
                                .batch = batch,
                                .batch_index = batch_index,
                                .chunking = chunking,
                                .scattered = scattered,
                                .seed = 1 + batch});
  return variants;
}

/// Skipped on CPUs without the path.
void check_every_batch(SimdPath path, std::uint32_t threads) {
  if (!cpu_has(path)) {
    WARN("this CPU has no " << name(path));
    return;
  }
  for (std::uint32_t batch = 1; batch <= kMaxStepSequences; ++batch)
    for (Variant variant : variants_of(batch)) {
      variant.simd = path;
      variant.threads = threads;
      check_variant(variant);
    }
}

/// Plain loops take a hundred times as long, so only some batch sizes.
void check_some_batches(bool reference) {
  for (const std::uint32_t batch : {1u, 2u, 3u, 4u, 5u, 8u, 13u, 33u, 64u})
    for (Variant variant : variants_of(batch)) {
      variant.reference = reference;
      variant.simd = SimdPath::Scalar;
      check_variant(variant);
    }
}

}  // namespace

// One case per path and thread count, so that they can run in parallel.
TEST_CASE("same bits, whole matrix: AVX2, one thread") {
  check_every_batch(SimdPath::Avx2, 1);
}
TEST_CASE("same bits, whole matrix: AVX2, two threads") {
  check_every_batch(SimdPath::Avx2, 2);
}
TEST_CASE("same bits, whole matrix: AVX2, three threads") {
  check_every_batch(SimdPath::Avx2, 3);
}
TEST_CASE("same bits, whole matrix: AVX-VNNI, one thread") {
  check_every_batch(SimdPath::AvxVnni, 1);
}
TEST_CASE("same bits, whole matrix: AVX-VNNI, two threads") {
  check_every_batch(SimdPath::AvxVnni, 2);
}
TEST_CASE("same bits, whole matrix: AVX-VNNI, three threads") {
  check_every_batch(SimdPath::AvxVnni, 3);
}
TEST_CASE("same bits, whole matrix: AVX-512, one thread") {
  check_every_batch(SimdPath::Avx512, 1);
}
TEST_CASE("same bits, whole matrix: AVX-512, two threads") {
  check_every_batch(SimdPath::Avx512, 2);
}
TEST_CASE("same bits, whole matrix: AVX-512, three threads") {
  check_every_batch(SimdPath::Avx512, 3);
}
TEST_CASE("same bits, whole matrix: AMX, one thread") {
  check_every_batch(SimdPath::Amx, 1);
}
TEST_CASE("same bits, whole matrix: AMX, two threads") {
  check_every_batch(SimdPath::Amx, 2);
}
TEST_CASE("same bits, whole matrix: AMX, three threads") {
  check_every_batch(SimdPath::Amx, 3);
}
TEST_CASE("same bits, whole matrix: plain C++ in tiles") {
  check_some_batches(false);
}
TEST_CASE("same bits, whole matrix: the reference backend") {
  check_some_batches(true);
}

}  // namespace leasehold::testing
