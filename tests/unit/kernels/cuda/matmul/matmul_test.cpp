/// Matmul on cards matches doubles within its roundings, for every type and shape.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "tests/unit/kernels/cuda/matmul/matmul_fixture.hpp"

namespace leasehold::testing {
namespace {

struct Expected {
  double value;
  double slack;
};

/// Rounding a factor to a half gives a relative error of 2^-11, or 2^-25 for subnormal halves. Sums
/// and later steps round once per term, as floats. F32 weights are not rounded, but the bound holds
/// for them too.
Expected expected_result(const MatmulCall& call, const std::vector<float>& weights,
                         std::uint32_t result, std::uint32_t output) {
  const std::uint32_t n_in = call.weight->n_in;
  const std::uint32_t row = !call.chosen.empty()   ? result / call.items_per_x
                            : !call.select.empty() ? call.select[result]
                                                   : result;
  const double bias = call.bias.empty() ? 0.0 : call.bias[output];
  const double before =
      call.before.empty() ? 0.0 : call.before[std::size_t{result} * call.n_out() + output];
  double sum = bias + before;
  double products = 0.0;
  double reach = 0.0;
  for (std::uint32_t k = 0; k < n_in; ++k) {
    const double x = call.x[std::size_t{row} * n_in + k];
    sum += weights[k] * x;
    products += std::abs(weights[k] * x);
    reach += std::abs(x);
  }
  const double roundings = (n_in + 8.0) * 0x1p-24;
  return {sum, products * (0x1.01p-10 + roundings) + reach * 0x1.01p-25 +
                   (std::abs(bias) + std::abs(before)) * 0x1p-22};
}

void check(const MatmulCall& call, const RunOptions& options = {}) {
  const std::vector<float> out = run_matmul(call, options);
  const std::uint32_t n_out = call.n_out();
  double worst = 0;
  for (std::uint32_t result = 0; result < call.n_results(); ++result) {
    const std::uint32_t expert = call.chosen.empty() ? 0 : call.chosen[result];
    for (std::uint32_t output = 0; output < n_out; ++output) {
      const std::vector<float> weights = call.weight->row(expert * n_out + output);
      const Expected expected = expected_result(call, weights, result, output);
      const double error = std::abs(out[std::size_t{result} * n_out + output] - expected.value);
      worst = error <= expected.slack ? std::max(worst, error / expected.slack) : 2.0;
      if (worst > 1.0) {
        CAPTURE(name(call.weight->type), n_out, call.weight->n_in, call.n_rows(), result, output,
                expected.value, expected.slack, out[std::size_t{result} * n_out + output]);
        REQUIRE(worst <= 1.0);
      }
    }
  }
}

}  // namespace

TEST_CASE("cuda matmul: every type and shape matches doubles within its roundings") {
  SeededRandom random(1);
  for (const TensorType type : kEveryType)
    for (int shape = 0; shape < 4; ++shape) {
      const DeviceMatrix weight(random, type, static_cast<std::uint32_t>(1 + random.below(70)),
                                width_of(type, static_cast<std::uint32_t>(1 + random.below(600))));
      const auto n_rows = static_cast<std::uint32_t>(1 + random.below(40));
      RunOptions options;
      options.card.n_sms = random.below(2) == 0 ? 1 : 132;
      options.prepare_first = random.below(2) == 0;
      options.spare = static_cast<std::uint32_t>(random.below(9));
      check(random_call(random, weight, n_rows), options);
    }
}

TEST_CASE("cuda matmul: x of any magnitude keeps its precision, row by row") {
  SeededRandom random(2);
  const DeviceMatrix weight(random, TensorType::Q4_K, 20, 512);
  for (const float reach : {1e-30F, 1e-6F, 1.0F, 3e4F, 1e30F}) {
    MatmulCall call = {.weight = &weight, .x = random_floats(random, 3 * weight.n_in, reach)};
    for (std::uint32_t i = 0; i < weight.n_in; ++i) call.x[i] *= 1e-4F;
    check(call);
  }
}

TEST_CASE("cuda matmul: a row of zeros gives the bias, a row with NaN or infinity gives NaN") {
  SeededRandom random(3);
  const DeviceMatrix weight(random, TensorType::Q8_0, 20, 96);
  MatmulCall call = {.weight = &weight, .x = random_floats(random, 4 * weight.n_in)};
  call.bias = random_floats(random, weight.n_out);
  std::fill_n(call.x.begin() + weight.n_in, weight.n_in, 0.0F);
  call.x[2 * weight.n_in + 7] = std::numeric_limits<float>::quiet_NaN();
  call.x[3 * weight.n_in + 95] = -std::numeric_limits<float>::infinity();
  const std::vector<float> out = run_matmul(call);
  for (std::uint32_t output = 0; output < weight.n_out; ++output) {
    REQUIRE(std::isfinite(out[output]));
    REQUIRE(out[weight.n_out + output] == call.bias[output]);
    REQUIRE(std::isnan(out[2 * weight.n_out + output]));
    REQUIRE(std::isnan(out[3 * weight.n_out + output]));
  }
}

TEST_CASE("cuda matmul: after the engine is stopped no kernel changes anything") {
  SeededRandom random(4);
  for (const TensorType type : {TensorType::F32, TensorType::Q4_K})
    for (const std::uint32_t n_rows : {1, 70}) {
      const DeviceMatrix weight(random, type, 40, 512);
      MatmulCall call = {.weight = &weight,
                         .x = random_floats(random, std::size_t{n_rows} * weight.n_in)};
      call.before = random_floats(random, std::size_t{n_rows} * weight.n_out);
      RunOptions options = {.is_stopped = true};
      options.card.has_wgmma = true;
      REQUIRE(first_difference(run_matmul(call, options), call.before) == -1);
    }
}

}  // namespace leasehold::testing
