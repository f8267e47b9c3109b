/// Matmuls of the same rows, with what computes these rows: the bits of one launch each.
#include <catch2/catch.hpp>
#include <memory>
#include <vector>

#include "tests/contract/backend/grouped_matrix.hpp"
#include "tests/contract/backend/rig.hpp"

namespace leasehold::testing {
namespace {

constexpr int kProjections = 60;

enum class Before : std::uint8_t { Nothing, Norm, Gate };

/// Three types whose rows are rounded alike, unless `is_mixed`.
std::vector<TensorType> types_of(SeededRandom& random, bool is_mixed) {
  if (is_mixed) return {TensorType::Q4_0, TensorType::Q6_K, TensorType::Q8_0};
  if (random.below(2) == 0) return {TensorType::Q8_0, TensorType::Q5_0, TensorType::Q4_1};
  return {TensorType::Q4_K, TensorType::Q4_K, TensorType::Q6_K};
}

struct ProjectionCase {
  ProjectionCase(SeededRandom& random, Before what, bool is_mixed)
      : before(what),
        n_in(256 * static_cast<std::uint32_t>(1 + random.below(10))),
        n_rows(static_cast<std::uint32_t>(1 + random.below(40))),
        x(random_floats(random, std::size_t{n_rows} * n_in)),
        second(random_floats(random, x.size())),
        gain(random_floats(random, n_in)),
        gain_memory(n_in * sizeof(float)) {
    gain_memory.fill<float>(gain);
    for (const TensorType type : types_of(random, is_mixed)) {
      const auto n_out = static_cast<std::uint32_t>(1 + random.below(70));
      weights.push_back(std::make_unique<GroupedMatrix>(random, type, n_out, n_in));
    }
    weights.resize(1 + random.below(weights.size()));
    if (random.below(2) == 1)
      for (std::uint32_t r = 0; r < n_rows; ++r)
        if (r + 1 == n_rows || random.below(3) == 0) select.push_back(r);
  }

  using Outputs = std::vector<std::vector<float>>;

  /// `run(backend, context, projection)` computes the outputs, which are returned.
  template <class Run>
  Outputs on(Rig& rig, Run&& run) const {
    std::vector<float> rows = x;
    std::vector<float> normed(x.size());
    const RmsNormArgs norm{.site = LaunchSite::FfnNorm,
                           .x = rows.data(),
                           .weight = gain_memory.at().as<const float>(),
                           .out = normed.data(),
                           .width = n_in,
                           .epsilon = 1e-5F};
    const SwiGluArgs gate{rows.data(), second.data(), n_in};
    Outputs out;
    std::vector<MatmulArgs> matmuls;
    for (const auto& weight : weights)
      out.emplace_back((select.empty() ? n_rows : select.size()) * weight->rows.n_out, 0.5F);
    for (std::size_t m = 0; m < weights.size(); ++m)
      matmuls.push_back({.site = LaunchSite::FfnUp,
                         .weight = weights[m]->view(),
                         .x = before == Before::Norm ? normed.data() : rows.data(),
                         .out = out[m].data(),
                         .accumulate = m == 1,
                         .select = select});
    run_step(rig, plain_rows(n_rows), [&](Backend& backend, const LaunchContext& context) {
      return run(backend, context,
                 ProjectionArgs{.norm = before == Before::Norm ? &norm : nullptr,
                                .swiglu = before == Before::Gate ? &gate : nullptr,
                                .matmuls = matmuls});
    });
    return out;
  }

  Before before;
  std::uint32_t n_in;
  std::uint32_t n_rows;
  std::vector<float> x;
  std::vector<float> second;
  std::vector<float> gain;
  LeasedMemory gain_memory;
  std::vector<std::unique_ptr<GroupedMatrix>> weights;
  std::vector<std::uint32_t> select;
};

LaunchStatus together(Backend& backend, const LaunchContext& context, const ProjectionArgs& args) {
  return backend.project(context, args);
}

/// One launch each.
LaunchStatus one_by_one(Backend& backend, const LaunchContext& context,
                        const ProjectionArgs& args) {
  return backend.Backend::project(context, args);
}

}  // namespace

TEST_CASE("projection: matmuls after a norm or a gate have the bits of one launch each") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  const Before before = GENERATE(Before::Nothing, Before::Norm, Before::Gate);
  SeededRandom random(test_seed() + 600);
  Rig rig(threads);
  Rig reference(0);
  for (int shape = 0; shape < kProjections / 3; ++shape) {
    const ProjectionCase c(random, before, shape % 4 == 3);
    CAPTURE(threads, static_cast<int>(before), shape, c.n_in, c.n_rows, c.weights.size(),
            c.select.size());
    const ProjectionCase::Outputs out = c.on(rig, together);
    const ProjectionCase::Outputs expected = c.on(reference, one_by_one);
    for (std::size_t m = 0; m < out.size(); ++m)
      REQUIRE(first_difference(out[m], expected[m]) == -1);
  }
}

TEST_CASE("projection: on the CPU backend, matmuls that round alike need fewer units together") {
  SeededRandom random(test_seed() + 700);
  Rig rig(2);
  for (const Before before : {Before::Norm, Before::Gate}) {
    const ProjectionCase c(random, before, false);
    const std::uint64_t begin = rig.units();
    c.on(rig, together);
    const std::uint64_t fused = rig.units() - begin;
    c.on(rig, one_by_one);
    CHECK(fused < rig.units() - begin - fused);
  }
}

}  // namespace leasehold::testing
