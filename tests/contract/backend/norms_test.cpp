/// Norms with a mean, with several vectors per row and with a factor of the result; heads whose
/// values are normalised; queries alone.
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/contract/backend/rig.hpp"

namespace leasehold::testing {
namespace {

/// One norm over random rows, whose results are added to random numbers.
struct NormCase {
  NormCase(SeededRandom& random, std::uint32_t vectors, std::uint32_t elements, bool centered,
           bool own_weights)
      : vectors_per_row(vectors),
        width(elements),
        is_centered(centered),
        has_own_weights(own_weights),
        x(random_floats(random, rows.size() * vectors * elements, 3.0F)),
        before(random_floats(random, x.size())),
        gain(random_floats(random, vectors * elements)) {
    for (float& element : x) element += 2.0F;  // a mean that matters
    gain_memory.fill<float>(gain);
    scale_memory.fill<float>(std::vector<float>{kOutScale});
  }

  std::vector<float> on(Rig& rig, bool accumulate) const {
    std::vector<float> out = before;
    run_step(rig, rows, [&](Backend& backend, const LaunchContext& context) {
      return backend.rms_norm(context, {.site = LaunchSite::FfnNorm,
                                        .x = x.data(),
                                        .weight = gain_memory.at().as<const float>(),
                                        .out = out.data(),
                                        .width = width,
                                        .epsilon = 1e-6F,
                                        .scale = 0.5F,
                                        .accumulate = accumulate,
                                        .is_centered = is_centered,
                                        .vectors_per_row = vectors_per_row,
                                        .has_own_weights = has_own_weights,
                                        .out_scale = scale_memory.at().as<const float>()});
    });
    return out;
  }

  double expected(std::size_t i, bool accumulate) const {
    const std::size_t first = i / width * width;
    double mean = 0;
    for (std::uint32_t k = 0; k < width; ++k) mean += is_centered ? x[first + k] : 0;
    mean /= width;
    double squares = 0;
    for (std::uint32_t k = 0; k < width; ++k) squares += std::pow(x[first + k] - mean, 2);
    const std::size_t weight = has_own_weights ? i % (vectors_per_row * width) : i - first;
    const double normed = (x[i] - mean) * 0.5 / std::sqrt(squares / width + 1e-6) * gain[weight];
    return (normed + (accumulate ? before[i] : 0)) * kOutScale;
  }

  static constexpr float kOutScale = 1.25F;
  std::vector<RowRef> rows = plain_rows(5);
  std::uint32_t vectors_per_row;
  std::uint32_t width;
  bool is_centered;
  bool has_own_weights;
  std::vector<float> x;
  std::vector<float> before;
  std::vector<float> gain;
  LeasedMemory gain_memory{2048 * sizeof(float)};
  LeasedMemory scale_memory{sizeof(float)};
};

}  // namespace

TEST_CASE(
    "backend: a norm subtracts the mean, norms each vector of a row, also with a weight of its "
    "own, "
    "and scales the result") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  SeededRandom random(test_seed() + 670);
  Rig rig(threads);
  Rig reference(0);
  for (const std::uint32_t width : {4u, 37u, 96u, 333u}) {
    for (const std::uint32_t vectors : {1u, 3u}) {
      for (const bool is_centered : {false, true}) {
        for (const bool accumulate : {false, true}) {
          const NormCase c(random, vectors, width, is_centered, vectors > 1 && accumulate);
          const std::vector<float> out = c.on(rig, accumulate);
          CAPTURE(threads, width, vectors, is_centered, accumulate);
          REQUIRE(first_difference(out, c.on(reference, accumulate)) == -1);
          for (std::size_t i = 0; i < out.size(); ++i)
            REQUIRE(out[i] == Approx(c.expected(i, accumulate)).margin(1e-5));
        }
      }
    }
  }
}

TEST_CASE("backend: values are normalised without a weight, and queries alone change no block") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  SeededRandom random(test_seed() + 680);
  Rig rig(threads);
  constexpr KvLayer kLayer{.n_kv_heads = 2, .head_dim = 40, .type = KvType::F32};
  const KvFixture kv(random, KvLayout(2, kLayer), {7});
  const std::vector<RowRef> rows = rows_of({1}, {7});
  const std::vector<std::byte> before = kv.bytes_of(0);
  auto q = random_floats(random, 4 * kLayer.head_dim);
  const auto prepare = [&](std::vector<float>* k, std::vector<float>* v) {
    run_step(rig, rows, [&](Backend& backend, const LaunchContext& context) {
      return backend.prepare_heads(context, {.layout = kv.layout.layer(1),
                                             .q = q.data(),
                                             .k = k != nullptr ? k->data() : nullptr,
                                             .v = v != nullptr ? v->data() : nullptr,
                                             .n_heads = 4,
                                             .query_norm = {},
                                             .key_norm = {},
                                             .norms_values = true,
                                             .epsilon = 1e-6F,
                                             .rope_dim = 0,
                                             .style = RopeStyle::Halves,
                                             .cos_sin = nullptr,
                                             .block_tables = kv.block_tables()});
    });
  };
  prepare(nullptr, nullptr);
  CHECK(kv.bytes_of(0) == before);
  auto k = random_floats(random, 2 * kLayer.head_dim);
  auto v = random_floats(random, 2 * kLayer.head_dim);
  const std::vector<float> values = v;
  prepare(&k, &v);
  CHECK(kv.bytes_of(0) != before);
  for (std::uint32_t head = 0; head < 2; ++head) {
    double squares = 0;
    for (std::uint32_t d = 0; d < 40; ++d) squares += std::pow(values[head * 40 + d], 2);
    for (std::uint32_t d = 0; d < 40; ++d) {
      CHECK(kv.at(0, 1, 0, head, 6, d) == k[head * 40 + d]);
      CHECK(kv.at(0, 1, 1, head, 6, d) ==
            Approx(values[head * 40 + d] / std::sqrt(squares / 40 + 1e-6)).margin(1e-6));
    }
  }
}

TEST_CASE("backend: the second operand of an activation may have a stride of its own") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  SeededRandom random(test_seed() + 690);
  Rig rig(threads);
  const auto rows = plain_rows(6);
  for (const std::uint32_t width : {5u, 32u, 200u}) {
    const std::uint32_t stride = 3 * width;
    const auto gate = random_floats(random, rows.size() * width);
    const auto up = random_floats(random, rows.size() * stride);
    std::vector<float> apart;
    for (std::size_t i = 0; i < gate.size(); ++i)
      apart.push_back(up[i / width * stride + i % width]);
    const auto on = [&](const std::vector<float>& second, std::uint32_t up_stride) {
      std::vector<float> out = gate;
      run_step(rig, rows, [&](Backend& backend, const LaunchContext& context) {
        return backend.swiglu(context, {.gate = out.data(),
                                        .up = second.data(),
                                        .width = width,
                                        .activation = Activation::GeGlu,
                                        .up_stride = up_stride});
      });
      return out;
    };
    CAPTURE(threads, width);
    REQUIRE(first_difference(on(up, stride), on(apart, 0)) == -1);
  }
}

}  // namespace leasehold::testing
