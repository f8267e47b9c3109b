/// The promises of the CUDA backend alone: matmuls of halves have bits of their own that do not
/// depend on other rows; F32 matmuls have the reference's bits.
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/contract/backend/rig.hpp"

namespace leasehold::testing {
namespace {

/// A product of some rows of one sequence, with or without a bias and previous values.
struct Product {
  Rig& rig;
  const Matrix& weight;
  const std::vector<float>& bias;    // [n_out], or empty
  const std::vector<float>& before;  // [n_selected, n_out], or empty: out is overwritten

  std::vector<float> of(const std::vector<float>& x, std::span<const std::uint32_t> select) const {
    const std::size_t n_rows = x.size() / weight.n_in;
    const std::vector<RowRef> rows(n_rows, RowRef{0, 3});
    LeasedMemory bias_memory(weight.n_out * sizeof(float));
    bias_memory.fill<float>(bias);
    std::vector<float> out = before;
    out.resize((select.empty() ? n_rows : select.size()) * weight.n_out);
    run_step(rig, rows, [&](Backend& backend, const LaunchContext& context) {
      return backend.matmul(context, {.site = LaunchSite::FfnUp,
                                      .weight = weight.view(),
                                      .x = x.data(),
                                      .out = out.data(),
                                      .accumulate = !before.empty(),
                                      .select = select,
                                      .bias = bias.empty() ? Leased<const float>()
                                                           : bias_memory.at().as<const float>()});
    });
    return out;
  }
  std::vector<float> of(const std::vector<float>& x) const { return of(x, {}); }
};

/// Rounding a factor to a half gives a relative error of 2^-11, or up to 2^-25 for subnormal
/// halves. Every addition rounds once more, as floats do.
double slack(const Matrix& weight, std::uint32_t output, std::span<const float> x, double added) {
  double products = 0;
  double reach = 0;
  for (std::uint32_t k = 0; k < weight.n_in; ++k) {
    products += std::abs(weight.at(output, k) * x[k]);
    reach += std::abs(x[k]);
  }
  const double additions = (weight.n_in + 8.0) * 0x1p-24;
  return products * (0x1.01p-10 + additions) + reach * 0x1.01p-25 + added * 0x1p-22 + 1e-30;
}

std::vector<float> rows_from(const std::vector<float>& all, std::uint32_t first,
                             std::uint32_t count, std::uint32_t width) {
  const auto begin = all.begin() + std::ptrdiff_t{first} * width;
  return {begin, begin + std::ptrdiff_t{count} * width};
}

}  // namespace

TEST_CASE("cuda backend: a matmul of any type matches doubles within the rounding of halves") {
  SeededRandom random(test_seed() + 3000);
  Rig rig(kCuda);
  for (const TensorType type : kEveryType) {
    const Matrix weight(random, type, 70, 512);
    for (const std::uint32_t n_rows : {1u, 3u, 17u, 40u, 90u}) {
      const bool accumulates = n_rows != 3;
      const std::vector<std::uint32_t> select =
          n_rows == 17 ? std::vector<std::uint32_t>{0, 5, 16} : std::vector<std::uint32_t>{};
      const std::size_t n_results = select.empty() ? n_rows : select.size();
      const auto x = random_floats(random, std::size_t{n_rows} * weight.n_in, 40.0F);
      const auto bias = random_floats(random, weight.n_out);
      const auto before =
          accumulates ? random_floats(random, n_results * weight.n_out) : std::vector<float>{};
      const auto out = Product{rig, weight, bias, before}.of(x, select);
      double worst = 0;
      for (std::size_t i = 0; i < out.size(); i += 3) {
        const auto output = static_cast<std::uint32_t>(i % weight.n_out);
        const std::size_t result = i / weight.n_out;
        const std::size_t row = select.empty() ? result : select[result];
        const std::span<const float> mine(x.data() + row * weight.n_in, weight.n_in);
        const double added = accumulates ? before[i] : 0.0;
        double expected = bias[output] + added;
        for (std::uint32_t k = 0; k < weight.n_in; ++k)
          expected += weight.at(output, k) * double{mine[k]};
        const double allowed =
            slack(weight, output, mine, std::abs(double{bias[output]}) + std::abs(added));
        worst = std::max(worst, std::abs(out[i] - expected) / allowed);
      }
      CAPTURE(name(type), n_rows);
      REQUIRE(worst <= 1.0);
      REQUIRE(worst > 0.0);
    }
  }
}

TEST_CASE("cuda backend: an F32 matmul has the reference's bits") {
  SeededRandom random(test_seed() + 3100);
  Rig rig(kCuda);
  Rig reference(0);
  for (const std::uint32_t n_rows : {1u, 2u, 7u, 33u, 48u}) {
    const Matrix weight(random, TensorType::F32, 45, 96 + n_rows);
    const auto x = random_floats(random, std::size_t{n_rows} * weight.n_in);
    const auto bias = n_rows % 2 == 1 ? random_floats(random, weight.n_out) : std::vector<float>{};
    const auto before = random_floats(random, std::size_t{n_rows} * weight.n_out);
    CAPTURE(n_rows);
    REQUIRE(first_difference(Product{rig, weight, bias, before}.of(x),
                             Product{reference, weight, bias, before}.of(x)) == -1);
  }
}

TEST_CASE("cuda backend: a row's product has the same bits alone, among few rows and among many") {
  const TensorType type = GENERATE(TensorType::F32, TensorType::F16, TensorType::Q4_0,
                                   TensorType::Q8_0, TensorType::Q4_K, TensorType::Q6_K);
  constexpr std::uint32_t kMost = 200;
  SeededRandom random(test_seed() + 3200);
  Rig rig(kCuda);
  const Matrix weight(random, type, 72, 512);
  const auto x = random_floats(random, std::size_t{kMost} * weight.n_in);
  const Product product{rig, weight, {}, {}};
  const auto all = product.of(x);
  for (const std::uint32_t count : {1u, 2u, 7u, 8u, 9u, 31u, 64u, 65u, 130u, 199u}) {
    const std::uint32_t first = (kMost - count) / 2;
    const auto some = product.of(rows_from(x, first, count, weight.n_in));
    CAPTURE(name(type), count);
    REQUIRE(first_difference(some, rows_from(all, first, count, weight.n_out)) == -1);
  }
}

TEST_CASE("cuda backend: a NaN stays a NaN and affects only its own row") {
  SeededRandom random(test_seed() + 3300);
  Rig rig(kCuda);
  const Matrix weight(random, TensorType::Q8_0, 20, 256);
  const auto calm = random_floats(random, 3 * std::size_t{weight.n_in});
  auto x = calm;
  x[weight.n_in + 77] = std::nanf("");
  const auto expected = Product{rig, weight, {}, {}}.of(calm);
  const auto out = Product{rig, weight, {}, {}}.of(x);
  for (std::uint32_t i = 0; i < out.size(); ++i) {
    CAPTURE(i);
    if (i / weight.n_out == 1)
      REQUIRE(std::isnan(out[i]));
    else
      REQUIRE(out[i] == expected[i]);
  }
}

}  // namespace leasehold::testing
