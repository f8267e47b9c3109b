/// The same-bits matrix: every batch from 1 to 64 with its first, middle and last place, every way
/// to cut the prompt, threads, path, block placement and kv type. About an hour of one core; label
/// long.
#include <set>

#include "tests/model/matrix.hpp"

namespace leasehold::testing {
namespace {

constexpr Chunking kChunkings[] = {Chunking::OneByOne, Chunking::Whole, Chunking::Sixteens,
                                   Chunking::Random};

/// Everything that can vary at one batch size but path and threads.
std::vector<Way> ways_of(std::uint32_t batch) {
  std::vector<Way> ways;
  for (const std::uint32_t place : std::set{0u, batch / 2, batch - 1})
    for (const Chunking chunking : kChunkings)
      for (const bool scattered : {false, true})
        for (const KvType kv_type : {KvType::F16, KvType::F32})
          ways.push_back({.kv_type = kv_type,
                          .batch = batch,
                          .place = place,
                          .chunking = chunking,
                          .scattered = scattered,
                          .seed = 1 + batch});
  return ways;
}

}  // namespace

TEST_CASE("same bits, all of it: every SIMD path, whatever the batch, place, chunks and blocks") {
  const SimdPath path = GENERATE(SimdPath::Avx2, SimdPath::Avx512);
  const std::uint32_t threads = GENERATE(1u, 2u, 3u);
  if (!cpu_has(path)) {
    WARN("this CPU has no " << name(path));
    return;
  }
  for (std::uint32_t batch = 1; batch <= kMaxStepSequences; ++batch)
    for (Way way : ways_of(batch)) {
      way.simd = path;
      way.threads = threads;
      check_way(way);
    }
}

/// They take a hundred times as long, so not every batch.
TEST_CASE("same bits, all of it: plain loops, whatever the batch, place, chunks and blocks") {
  const bool reference = GENERATE(false, true);
  for (const std::uint32_t batch : {1u, 2u, 3u, 4u, 5u, 8u, 13u, 33u, 64u})
    for (Way way : ways_of(batch)) {
      way.reference = reference;
      way.simd = SimdPath::Scalar;
      check_way(way);
    }
}

}  // namespace leasehold::testing
