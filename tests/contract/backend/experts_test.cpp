/// Mixture of experts: the choice, the products per expert, and the weighted sum.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <set>

#include "tests/contract/backend/matmul_cases.hpp"

namespace leasehold::testing {
namespace {

constexpr int kExpertShapes = 16;

std::uint32_t between(SeededRandom& random, std::uint32_t low, std::uint32_t high) {
  return low + static_cast<std::uint32_t>(random.below(high - low + 1));
}

struct Choice {
  std::vector<std::uint32_t> chosen;
  std::vector<float> weights;
};

struct ChoiceCase {
  explicit ChoiceCase(SeededRandom& random)
      : n_rows(between(random, 1, 40)),
        n_experts(between(random, 1, 16)),
        n_used(between(random, 1, n_experts)),
        normalize_expert_weights(random.below(2) == 1),
        gating(random.below(2) == 1 ? ExpertGating::Sigmoid : ExpertGating::Softmax),
        scale(random.below(2) == 1 ? 1.0F : 2.5F),
        scores(random_floats(random, std::size_t{n_rows} * n_experts, 6.0F)) {
    if (random.below(2) == 1) set_bias(random_floats(random, n_experts));
    if (random.below(2) == 1) set_expert_scales(random_floats(random, n_experts));
  }

  void set_bias(std::vector<float> values) {
    bias = std::move(values);
    bias_memory.fill<float>(bias);
  }

  void set_expert_scales(std::vector<float> values) {
    expert_scales = std::move(values);
    scales_memory.fill<float>(expert_scales);
  }

  Choice on(Rig& rig) const {
    Choice choice{.chosen = std::vector<std::uint32_t>(std::size_t{n_rows} * n_used, 99),
                  .weights = std::vector<float>(std::size_t{n_rows} * n_used)};
    run_step(rig, plain_rows(n_rows), [&](Backend& backend, const LaunchContext& context) {
      return backend.expert_routing(
          context, {.scores = scores.data(),
                    .n_experts = n_experts,
                    .n_used = n_used,
                    .normalize_expert_weights = normalize_expert_weights,
                    .chosen = choice.chosen.data(),
                    .weights = choice.weights.data(),
                    .gating = gating,
                    .selection_bias =
                        bias.empty() ? Leased<const float>() : bias_memory.at().as<const float>(),
                    .scale = scale,
                    .n_groups = n_groups,
                    .n_groups_used = n_groups_used,
                    .expert_scales = expert_scales.empty() ? Leased<const float>()
                                                           : scales_memory.at().as<const float>()});
    });
    return choice;
  }

  double score(std::uint32_t r, std::uint32_t e) const {
    return scores[std::size_t{r} * n_experts + e];
  }
  /// Without the division by the sum of a softmax.
  double term(std::uint32_t r, std::uint32_t e) const {
    const double exponential = std::exp(score(r, e));
    return gating == ExpertGating::Sigmoid ? exponential / (1 + exponential) : exponential;
  }
  double probability(std::uint32_t r, std::uint32_t e) const {
    double sum = 0;
    for (std::uint32_t of = 0; of < n_experts; ++of) sum += term(r, of);
    return term(r, e) / (gating == ExpertGating::Sigmoid ? 1 : sum);
  }
  /// What the choice compares.
  double key(std::uint32_t r, std::uint32_t e) const {
    if (bias.empty()) return n_groups == 1 ? score(r, e) : probability(r, e);
    return probability(r, e) + bias[e];
  }
  /// The sum of the two highest keys of a group.
  double group_key(std::uint32_t r, std::uint32_t group) const {
    const std::uint32_t size = n_experts / n_groups;
    std::vector<double> keys;
    for (std::uint32_t i = 0; i < size; ++i) keys.push_back(key(r, group * size + i));
    std::ranges::sort(keys, std::greater{});
    return keys[0] + (size > 1 ? keys[1] : 0);
  }
  /// Divides the experts into groups. Rows use some of them.
  void set_groups(SeededRandom& random) {
    do n_groups = between(random, 1, n_experts);
    while (n_experts % n_groups != 0);
    n_groups_used = between(random, 1, n_groups);
    n_used = between(random, 1, n_experts / n_groups * n_groups_used);
  }

  std::uint32_t n_rows;
  std::uint32_t n_experts;
  std::uint32_t n_used;
  bool normalize_expert_weights;
  ExpertGating gating;
  float scale;
  std::uint32_t n_groups = 1;
  std::uint32_t n_groups_used = 1;
  std::vector<float> scores;
  std::vector<float> bias;  // [n_experts], or empty
  LeasedMemory bias_memory{16 * sizeof(float)};
  std::vector<float> expert_scales;  // [n_experts], or empty
  LeasedMemory scales_memory{16 * sizeof(float)};
};

double expected_weight(const ChoiceCase& c, const Choice& choice, std::uint32_t r,
                       std::uint32_t e) {
  double sum = 0;
  for (std::uint32_t k = 0; k < c.n_used; ++k)
    sum += c.probability(r, choice.chosen[r * c.n_used + k]);
  const double of_expert = c.expert_scales.empty() ? 1 : c.expert_scales[e];
  return c.probability(r, e) / (c.normalize_expert_weights ? sum : 1) * c.scale * of_expert;
}

using ExpertRows = ExpertsCase<Matrix>;

ExpertRows random_experts(SeededRandom& random) {
  const std::uint32_t n_experts = between(random, 1, 16);
  const TensorType type = random.below(2) == 1 ? TensorType::F16 : TensorType::Q8_0;
  const std::uint32_t n_out = between(random, 1, 30);
  return {random, n_experts, Matrix(random, type, n_experts * n_out, 32 * between(random, 1, 8))};
}

}  // namespace

TEST_CASE(
    "backend: a row goes to the experts with its highest scores, or probabilities with their bias, "
    "weighted by their shares") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  SeededRandom random(test_seed() + 2000);
  CAPTURE(threads, test_seed());
  Rig rig(threads);
  Rig reference(0);
  for (int shape = 0; shape < kExpertShapes; ++shape) {
    const ChoiceCase c(random);
    const Choice choice = c.on(rig);
    const Choice same = c.on(reference);
    CAPTURE(shape, c.n_rows, c.n_experts, c.n_used, c.normalize_expert_weights, c.gating, c.scale,
            c.bias);
    REQUIRE(choice.chosen == same.chosen);
    REQUIRE(first_difference(choice.weights, same.weights) == -1);
    for (std::uint32_t r = 0; r < c.n_rows; ++r) {
      std::set<std::uint32_t> left;
      for (std::uint32_t e = 0; e < c.n_experts; ++e) left.insert(e);
      for (std::uint32_t k = 0; k < c.n_used; ++k) {
        const std::uint32_t chosen = choice.chosen[r * c.n_used + k];
        REQUIRE(left.erase(chosen) == 1);
        for (const std::uint32_t other : left)
          REQUIRE(c.key(r, chosen) >= c.key(r, other) - (c.bias.empty() ? 0 : 1e-6));
        REQUIRE(choice.weights[r * c.n_used + k] ==
                Approx(expected_weight(c, choice, r, chosen)).epsilon(2e-6));
      }
    }
  }
}

TEST_CASE("backend: a row goes to the highest experts of its highest groups") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  SeededRandom random(test_seed() + 2020);
  CAPTURE(threads, test_seed());
  Rig rig(threads);
  Rig reference(0);
  for (int shape = 0; shape < 2 * kExpertShapes; ++shape) {
    ChoiceCase c(random);
    c.set_groups(random);
    const Choice choice = c.on(rig);
    CAPTURE(shape, c.n_rows, c.n_experts, c.n_used, c.n_groups, c.n_groups_used, c.gating, c.bias);
    REQUIRE(choice.chosen == c.on(reference).chosen);
    for (std::uint32_t r = 0; r < c.n_rows; ++r) {
      std::vector<double> sums;
      for (std::uint32_t g = 0; g < c.n_groups; ++g) sums.push_back(c.group_key(r, g));
      std::ranges::sort(sums, std::greater{});
      const double least = sums[c.n_groups_used - 1];
      const auto group_of = [&](std::uint32_t e) { return e / (c.n_experts / c.n_groups); };
      std::set<std::uint32_t> left;  // of the groups that are certainly used
      for (std::uint32_t e = 0; e < c.n_experts; ++e)
        if (c.group_key(r, group_of(e)) > least + 1e-6) left.insert(e);
      for (std::uint32_t k = 0; k < c.n_used; ++k) {
        const std::uint32_t chosen = choice.chosen[r * c.n_used + k];
        left.erase(chosen);
        REQUIRE(c.group_key(r, group_of(chosen)) >= least - 1e-6);
        for (const std::uint32_t other : left) REQUIRE(c.key(r, chosen) >= c.key(r, other) - 1e-6);
      }
    }
  }
}

TEST_CASE("backend: a bias chooses experts whose probabilities are almost zero") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  SeededRandom random(test_seed() + 2050);
  Rig rig(threads);
  ChoiceCase c(random);
  c.n_rows = 1;
  c.n_experts = 4;
  c.n_used = 2;
  c.normalize_expert_weights = true;
  c.scale = 1;
  c.gating = GENERATE(ExpertGating::Softmax, ExpertGating::Sigmoid);
  c.scores = {30, -90, -91, 29};
  c.set_bias({0, 5, 4, 0});
  const Choice choice = c.on(rig);
  CAPTURE(threads, c.gating);
  CHECK(choice.chosen == std::vector<std::uint32_t>{1, 2});
  for (const float weight : choice.weights) CHECK((weight >= 0 && weight < 1e-6F));
}

TEST_CASE("backend: equal scores and NaN scores still choose different experts") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  SeededRandom random(test_seed() + 2100);
  Rig rig(threads);
  ChoiceCase c(random);
  c.n_rows = 4;
  c.n_experts = 4;
  c.n_used = 3;
  c.bias.clear();
  c.scores = {1, 1, 1, 1, kNan, kNan, kNan, kNan, kNan, 0, -kInf, 0, kInf, 2, kInf, kNan};
  const Choice choice = c.on(rig);
  CAPTURE(threads);
  CHECK(choice.chosen == std::vector<std::uint32_t>{0, 1, 2, 0, 1, 2, 1, 3, 2, 0, 2, 1});
}

TEST_CASE("backend: each item goes through its own expert, whatever the other items do") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  SeededRandom random(test_seed() + 2200);
  CAPTURE(threads, test_seed());
  Rig rig(threads);
  Rig reference(0);
  for (int shape = 0; shape < kExpertShapes; ++shape) {
    const ExpertRows c = random_experts(random);
    const std::vector<float> out = c.on(rig);
    CAPTURE(shape, c.n_rows, c.n_experts, c.n_used, c.by_row, c.n_out, c.weight.n_in);
    const bool of_halves = threads == kCuda;
    if (!of_halves) REQUIRE(first_difference(out, c.on(reference)) == -1);
    for (std::size_t item = 0; item < c.chosen.size(); ++item)
      for (std::uint32_t o = 0; o < c.n_out; ++o) {
        double sum = c.bias_of(c.chosen[item], o);
        double magnitude = std::abs(sum);
        double reach = 0;
        for (std::uint32_t i = 0; i < c.weight.n_in; ++i) {
          const double x = c.x_of(item)[i];
          const double product = c.weight.at(c.chosen[item] * c.n_out + o, i) * x;
          sum += product;
          magnitude += std::abs(product);
          reach += std::abs(x);
        }
        const double slack = magnitude * (c.weight.n_in / 32.0 + 7) * 0x1p-24;
        const double slack_of_halves = magnitude * (0x1.01p-10 + c.weight.n_in * 0x1p-24) +
                                       reach * 0x1.01p-25;  // as for matmuls
        REQUIRE(std::abs(out[item * c.n_out + o] - sum) <= (of_halves ? slack_of_halves : slack));
      }
  }
}

TEST_CASE("backend: without a choice each row goes through the matrices in turn") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  SeededRandom random(test_seed() + 2250);
  CAPTURE(threads, test_seed());
  Rig rig(threads);
  for (int shape = 0; shape < kExpertShapes; ++shape) {
    ExpertRows c = random_experts(random);
    c.use_all(random);
    CAPTURE(shape, c.n_rows, c.n_experts, c.by_row, c.n_out, c.weight.n_in);
    check_matrices_in_turn(rig, c);
  }
}

TEST_CASE("backend: an expert with more rows than a tile computes every row") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  SeededRandom random(test_seed() + 2300);
  Rig rig(threads);
  Rig reference(0);
  ExpertRows c = random_experts(random);
  c.n_rows = 48;
  c.n_experts = 2;
  c.n_used = 4;
  c.by_row = false;
  c.n_out = 5;
  c.weight = Matrix(random, TensorType::F32, 10, 1000);
  c.x = random_floats(random, 48 * 4 * 1000);
  c.chosen.assign(48 * 4, 1);
  c.chosen[17] = 0;
  REQUIRE(first_difference(c.on(rig), c.on(reference)) == -1);
}

TEST_CASE("backend: a weighted sum adds its terms in order and applies the sigmoid to a gate") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  SeededRandom random(test_seed() + 2400);
  CAPTURE(threads, test_seed());
  Rig rig(threads);
  Rig reference(0);
  for (int shape = 0; shape < kExpertShapes; ++shape) {
    const std::uint32_t n_rows = between(random, 1, 48);
    const std::uint32_t n_terms = between(random, 1, 9);
    const std::uint32_t width = between(random, 1, shape == 0 ? 9000 : 700);
    const bool applies_sigmoid = random.below(2) == 1;
    const bool accumulate = random.below(3) > 0;
    const auto x = random_floats(random, std::size_t{n_rows} * n_terms * width);
    const auto weights = random_floats(random, std::size_t{n_rows} * n_terms, 3.0F);
    const auto before = random_floats(random, std::size_t{n_rows} * width);
    const auto on = [&](Rig& on_rig) {
      std::vector<float> out = before;
      run_step(on_rig, plain_rows(n_rows), [&](Backend& backend, const LaunchContext& context) {
        return backend.weighted_sum(context, {.x = x.data(),
                                              .weights = weights.data(),
                                              .out = out.data(),
                                              .n_terms = n_terms,
                                              .width = width,
                                              .applies_sigmoid = applies_sigmoid,
                                              .accumulate = accumulate});
      });
      return out;
    };
    const std::vector<float> out = on(rig);
    CAPTURE(shape, n_rows, n_terms, width, applies_sigmoid, accumulate);
    REQUIRE(first_difference(out, on(reference)) == -1);
    for (std::size_t i = 0; i < out.size(); i += 7) {
      const std::size_t row = i / width;
      double expected = accumulate ? before[i] : 0;
      for (std::uint32_t k = 0; k < n_terms; ++k) {
        const double weight = weights[row * n_terms + k];
        expected += (applies_sigmoid ? 1 / (1 + std::exp(-weight)) : weight) *
                    x[(row * n_terms + k) * width + i % width];
      }
      REQUIRE(out[i] == Approx(expected).epsilon(1e-5).margin(2e-5));
    }
  }
}

}  // namespace leasehold::testing
