/// Random matmuls, with a matrix `M` of rows (Matrix) or of row groups (GroupedMatrix).
#pragma once

#include <utility>

#include "tests/contract/backend/grouped_matrix.hpp"
#include "tests/contract/backend/rig.hpp"

namespace leasehold::testing {

/// The products of all rows of x, which belong to one sequence.
inline std::vector<float> product(Rig& rig, const WeightMatrix& weight,
                                  const std::vector<float>& x) {
  const std::size_t n_rows = x.size() / weight.n_in;
  std::vector<float> out(n_rows * weight.n_out);
  run_step(rig, std::vector<RowRef>(n_rows, RowRef{0, 0}),
           [&](Backend& backend, const LaunchContext& context) {
             return backend.matmul(
                 context,
                 {.site = LaunchSite::FfnDown, .weight = weight, .x = x.data(), .out = out.data()});
           });
  return out;
}

/// A matmul that may have a selection and a bias, and may add to its output.
template <class M>
struct MatmulCase {
  MatmulCase(SeededRandom& random, M matrix)
      : weight(std::move(matrix)),
        n_out(weight.view().n_out),
        n_in(weight.view().n_in),
        rows(plain_rows(static_cast<std::uint32_t>(1 + random.below(40)))),
        x(random_floats(random, rows.size() * n_in)),
        accumulate(random.below(2) == 1),
        bias(random.below(2) == 1 ? random_floats(random, n_out) : std::vector<float>{}),
        bias_memory(n_out * sizeof(float)) {
    bias_memory.fill<float>(bias);
    if (random.below(2) == 1)
      for (std::uint32_t r = 0; r < rows.size(); ++r)
        if (r + 1 == rows.size() || random.below(3) == 0) select.push_back(r);
    before = random_floats(random, (select.empty() ? rows.size() : select.size()) * n_out);
  }

  std::vector<float> on(Rig& rig) const {
    std::vector<float> out = before;
    run_step(rig, rows, [&](Backend& backend, const LaunchContext& context) {
      return backend.matmul(context, {.site = LaunchSite::FfnUp,
                                      .weight = weight.view(),
                                      .x = x.data(),
                                      .out = out.data(),
                                      .accumulate = accumulate,
                                      .select = select,
                                      .bias = bias.empty() ? Leased<const float>()
                                                           : bias_memory.at().as<const float>()});
    });
    return out;
  }
  /// What the product of row i of `out` is added to, in this order: the previous value and the
  /// bias.
  std::pair<double, double> added_to(std::size_t i, std::uint32_t output) const {
    return {accumulate ? before[i * n_out + output] : 0.0, bias.empty() ? 0.0 : bias[output]};
  }
  /// The row of x of row i of `out`.
  const float* x_of(std::size_t i) const {
    return x.data() + (select.empty() ? i : select[i]) * std::size_t{n_in};
  }

  M weight;
  std::uint32_t n_out;
  std::uint32_t n_in;
  std::vector<RowRef> rows;
  std::vector<float> x;
  bool accumulate;
  std::vector<float> bias;  // [n_out], or empty
  LeasedMemory bias_memory;
  std::vector<std::uint32_t> select;
  std::vector<float> before;
};

/// A matmul of experts with some rows each, which share rows of x or have one for each item.
template <class M>
struct ExpertsCase {
  /// The matrices of the experts are consecutive.
  ExpertsCase(SeededRandom& random, std::uint32_t n_experts_, M matrices)
      : n_experts(n_experts_),
        n_used(static_cast<std::uint32_t>(1 + random.below(n_experts))),
        by_row(random.below(2) == 1),
        n_out(matrices.view().n_out / n_experts),
        n_rows(static_cast<std::uint32_t>(1 + random.below(20))),
        weight(std::move(matrices)),
        x(random_floats(random, std::size_t{n_rows} * (by_row ? 1 : n_used) * weight.view().n_in)) {
    for (std::uint32_t item = 0; item < n_rows * n_used; ++item)
      chosen.push_back(static_cast<std::uint32_t>(random.below(n_experts)));
  }

  /// The products, `gap` floats apart, which stay 0. Without a choice, every row uses all experts.
  std::vector<float> on(Rig& rig, bool has_choice = true, std::uint32_t gap = 0) const {
    std::vector<float> out(chosen.size() * (n_out + gap));
    std::vector<float> biases;
    for (std::uint32_t e = 0; e < n_experts; ++e)
      for (std::uint32_t o = 0; o < n_out; ++o) biases.push_back(bias_of(e, o));
    LeasedMemory bias(biases.size() * sizeof(float));
    bias.fill<float>(biases);
    run_step(rig, plain_rows(n_rows), [&](Backend& backend, const LaunchContext& context) {
      return backend.expert_matmul(
          context, {.site = LaunchSite::ExpertUp,
                    .weight = weight.view(),
                    .n_experts = n_experts,
                    .chosen = has_choice ? chosen.data() : nullptr,
                    .n_items = static_cast<std::uint32_t>(chosen.size()),
                    .x = x.data(),
                    .items_per_x = by_row ? n_used : 1,
                    .out = out.data(),
                    .bias = has_bias() ? bias.at().as<const float>() : Leased<const float>{},
                    .out_stride = gap > 0 ? n_out + gap : 0});
    });
    return out;
  }
  /// Makes every row use all experts in their order.
  void use_all(SeededRandom& random) {
    n_used = n_experts;
    x = random_floats(random, std::size_t{n_rows} * (by_row ? 1 : n_used) * weight.view().n_in);
    chosen.resize(std::size_t{n_rows} * n_used);
    for (std::uint32_t item = 0; item < chosen.size(); ++item) chosen[item] = item % n_experts;
  }
  bool has_bias() const { return n_rows % 2 == 0; }
  /// 0 without a bias.
  float bias_of(std::uint32_t expert, std::uint32_t o) const {
    return has_bias() ? static_cast<float>((expert * 31 + o * 7) % 13) / 8 - 1 : 0.0F;
  }
  std::span<const float> x_of(std::size_t item) const {
    const std::size_t n_in = weight.view().n_in;
    return std::span(x).subspan(item / (by_row ? n_used : 1) * n_in, n_in);
  }

  std::uint32_t n_experts;
  std::uint32_t n_used;
  bool by_row;
  std::uint32_t n_out;
  std::uint32_t n_rows;
  M weight;
  std::vector<float> x;
  std::vector<std::uint32_t> chosen;
};

/// Products of all experts without a choice, some floats apart, have the bits of chosen ones.
template <class M>
void check_matrices_in_turn(Rig& rig, const ExpertsCase<M>& c) {
  constexpr std::uint32_t kGap = 5;
  const std::vector<float> chosen = c.on(rig);
  const std::vector<float> apart = c.on(rig, false, kGap);
  std::vector<float> expected;
  for (std::size_t item = 0; item < c.chosen.size(); ++item) {
    const auto from = chosen.begin() + static_cast<std::ptrdiff_t>(item * c.n_out);
    expected.insert(expected.end(), from, from + c.n_out);
    expected.insert(expected.end(), kGap, 0.0F);
  }
  REQUIRE(first_difference(apart, expected) == -1);
  REQUIRE(first_difference(c.on(rig, false), chosen) == -1);
}

}  // namespace leasehold::testing
