/// Keys of latent attention, from their projection to the cache.
#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/numerics/rope.hpp"
#include "tests/contract/backend/rig.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kLatentRank = 64;
constexpr std::uint32_t kLatentRotated = 32;
constexpr std::uint32_t kLatentWidth = kLatentRank + kLatentRotated;
constexpr std::uint32_t kLatentHeads = 3;
constexpr std::uint16_t kLatentLayer = 1;

/// Element d of a rotated vector whose pairs are neighbours.
double rotated(const float* x, const float* cos_sin, std::uint32_t d) {
  const float* turn = cos_sin + d / 2 * 2;
  const double other = x[d % 2 == 0 ? d + 1 : d - 1];
  return x[d] * double{turn[0]} + (d % 2 == 0 ? -other : other) * turn[1];
}

}  // namespace

TEST_CASE("backend: latent keys are normed in front, rotated behind and stored once") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  SeededRandom random(test_seed() + 1040);
  Rig rig(threads);
  const KvLayout latent(
      2,
      {.n_kv_heads = 1, .head_dim = kLatentWidth, .type = KvType::F32, .latent_dim = kLatentRank});
  const KvFixture kv(random, latent, {20});
  const std::vector<RowRef> rows{{0, 18}, {0, 19}};
  const auto queries = random_floats(random, rows.size() * kLatentHeads * kLatentWidth);
  const auto keys = random_floats(random, rows.size() * kLatentWidth);
  const auto weights = random_floats(random, kLatentRank);
  LeasedMemory norm(kLatentRank * sizeof(float));
  norm.fill<float>(weights);
  std::vector<float> cos_sin(rows.size() * kLatentRotated);
  fill_rope_cos_sin(rows, {rope_frequencies(kLatentRotated, 10000.0)}, cos_sin.data());
  auto q = queries;
  auto k = keys;
  run_step(rig, rows, [&](Backend& backend, const LaunchContext& context) {
    return backend.prepare_heads(context, {.layout = latent.layer(kLatentLayer),
                                           .q = q.data(),
                                           .k = k.data(),
                                           .v = nullptr,
                                           .n_heads = kLatentHeads,
                                           .key_norm = norm.at().as<const float>(),
                                           .epsilon = 1e-5F,
                                           .rope_dim = kLatentRotated,
                                           .style = RopeStyle::Interleaved,
                                           .cos_sin = cos_sin.data(),
                                           .block_tables = kv.block_tables()});
  });
  CAPTURE(threads, test_seed());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const float* key = keys.data() + r * kLatentWidth;
    const float* turns = cos_sin.data() + r * kLatentRotated;
    double squares = 0;
    for (std::uint32_t d = 0; d < kLatentRank; ++d) squares += double{key[d]} * key[d];
    const double factor = 1 / std::sqrt(squares / kLatentRank + 1e-5);
    for (std::uint32_t d = 0; d < kLatentWidth; ++d) {
      const double expected = d < kLatentRank ? key[d] * factor * weights[d]
                                              : rotated(key + kLatentRank, turns, d - kLatentRank);
      REQUIRE(kv.at(0, kLatentLayer, 0, 0, rows[r].position, d) == Approx(expected).margin(2e-6));
    }
    for (std::uint32_t h = 0; h < kLatentHeads; ++h) {
      const std::size_t at = (r * kLatentHeads + h) * kLatentWidth;
      for (std::uint32_t d = 0; d < kLatentRank; ++d) REQUIRE(q[at + d] == queries[at + d]);
      for (std::uint32_t d = 0; d < kLatentRotated; ++d)
        REQUIRE(q[at + kLatentRank + d] ==
                Approx(rotated(queries.data() + at + kLatentRank, turns, d)).margin(2e-6));
    }
  }
}

}  // namespace leasehold::testing
