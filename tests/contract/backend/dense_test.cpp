/// Embedding, norm, matmul, rope, SwiGLU: correct within rounding, with the same bits everywhere.
#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/numerics/rope.hpp"
#include "tests/contract/backend/matmul_cases.hpp"

namespace leasehold::testing {
namespace {

constexpr int kShapes = 24;

TensorType random_type(SeededRandom& random) {
  while (true) {
    const auto type =
        tensor_type_from_gguf(static_cast<std::uint32_t>(random.below(std::size(kTensorTypeRows))));
    if (type) return *type;
  }
}

/// One width of eight may be beyond the 1024 elements that fast paths multiply at once.
std::uint32_t random_width(SeededRandom& random, TensorType type) {
  const std::uint64_t most = random.below(8) == 0 ? 2600 : 300;
  const auto width = static_cast<std::uint32_t>(1 + random.below(most));
  const std::uint32_t block = block_shape(type).elements;
  return (width + block - 1) / block * block;
}

using RowsCase = MatmulCase<Matrix>;

RowsCase random_matmul(SeededRandom& random) {
  const TensorType type = random_type(random);
  const auto n_out = static_cast<std::uint32_t>(1 + random.below(70));
  return {random, Matrix(random, type, n_out, random_width(random, type))};
}

struct Expected {
  double value;
  double slack;
  double slack_of_halves;  ///< For backends that round both factors to halves.
};

Expected expected_dot(const RowsCase& c, std::size_t i, std::uint32_t output) {
  const auto [before, bias] = c.added_to(i, output);
  double sum = before + bias;
  double magnitude = std::abs(before) + std::abs(bias);
  double reach = 0;
  for (std::uint32_t k = 0; k < c.n_in; ++k) {
    const double x = c.x_of(i)[k];
    sum += c.weight.at(output, k) * x;
    magnitude += std::abs(c.weight.at(output, k) * x);
    reach += std::abs(x);
  }
  // At most one rounding per element of a lane, per fold, and for the bias and the previous value.
  const double slack = magnitude * (c.n_in / 32.0 + 8) * 0x1p-24;
  // Rounding to a half gives a relative error of 2^-11, or 2^-25 for subnormals; sums round once
  // per term.
  return {sum, slack, magnitude * (0x1.01p-10 + c.n_in * 0x1p-24) + reach * 0x1.01p-25};
}

}  // namespace

TEST_CASE("backend: a matmul matches doubles within its roundings") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  SeededRandom random(test_seed());
  CAPTURE(threads, test_seed());
  Rig rig(threads);
  for (int shape = 0; shape < kShapes; ++shape) {
    const RowsCase c = random_matmul(random);
    const std::vector<float> out = c.on(rig);
    double worst = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      const Expected expected =
          expected_dot(c, i / c.n_out, static_cast<std::uint32_t>(i % c.n_out));
      const double slack = threads == kCuda ? expected.slack_of_halves : expected.slack;
      worst = std::max(worst, std::abs(out[i] - expected.value) / (slack + 1e-30));
    }
    CAPTURE(shape, name(c.weight.type), c.n_out, c.n_in, c.rows.size());
    REQUIRE(worst <= 1.0);
  }
}

TEST_CASE("backend: a matmul has the reference's bits for every type, shape and selection") {
  const std::uint32_t threads = GENERATE(from_range(kEveryBackend));
  SeededRandom random(test_seed() + 100);
  CAPTURE(threads, test_seed());
  Rig rig(threads);
  Rig reference(0);
  for (int shape = 0; shape < 2 * kShapes; ++shape) {
    const RowsCase c = random_matmul(random);
    CAPTURE(shape, name(c.weight.type), c.n_out, c.n_in, c.rows.size(), c.accumulate);
    REQUIRE(first_difference(c.on(rig), c.on(reference)) == -1);
  }
}

TEST_CASE("backend: a matmul larger than a tile is cut over outputs and over batch rows") {
  const std::uint32_t threads = GENERATE(from_range(kEveryBackend));
  SeededRandom random(test_seed() + 200);
  Rig rig(threads);
  Rig reference(0);
  const Matrix weight(random, TensorType::F16, 23, 1023);
  const auto x = random_floats(random, std::size_t{48} * weight.n_in);
  REQUIRE(first_difference(product(rig, weight.view(), x), product(reference, weight.view(), x)) ==
          -1);
}

TEST_CASE("backend: lanes without a tail element keep their bits, even a negative zero") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  Rig rig(threads);
  const std::vector<float> weights(33, 1e-30F);
  const std::vector<float> x(33, -1e-30F);  // each product underflows to -0
  LeasedMemory memory(weights.size() * sizeof(float));
  memory.fill<float>(weights);
  float out = 1.0F;
  run_step(rig, plain_rows(1), [&](Backend& backend, const LaunchContext& context) {
    return backend.matmul(
        context, {.site = LaunchSite::LmHead,
                  .weight = {.type = TensorType::F32, .n_out = 1, .n_in = 33, .data = memory.at()},
                  .x = x.data(),
                  .out = &out});
  });
  REQUIRE(out == 0.0F);
  REQUIRE(std::signbit(out));
}

TEST_CASE("backend: a row's product does not depend on its batch or its index") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  SeededRandom random(test_seed() + 300);
  Rig rig(threads);
  const Matrix weight(random, TensorType::Q8_0, 37, 160);
  const auto x = random_floats(random, weight.n_in);
  std::vector<float> alone;
  for (const std::uint32_t n_rows : {1, 2, 3, 4, 5, 17, 48}) {
    for (std::uint32_t place = 0; place < n_rows; place += 5) {
      auto batch = random_floats(random, std::size_t{n_rows} * weight.n_in);
      std::ranges::copy(x, batch.begin() + place * weight.n_in);
      const std::vector<float> out = product(rig, weight.view(), batch);
      const auto first = out.begin() + place * weight.n_out;
      const std::vector<float> mine(first, first + weight.n_out);
      if (alone.empty()) alone = mine;
      CAPTURE(threads, n_rows, place);
      REQUIRE(first_difference(mine, alone) == -1);
    }
  }
}

TEST_CASE("backend: an embedding is the token's row of the table, exactly") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  SeededRandom random(test_seed() + 400);
  Rig rig(threads);
  for (int shape = 0; shape < kShapes; ++shape) {
    const TensorType type = random_type(random);
    const Matrix table(random, type, 50, random_width(random, type));
    const auto rows = plain_rows(static_cast<std::uint32_t>(1 + random.below(40)));
    std::vector<std::int32_t> tokens;
    std::vector<float> expected;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      tokens.push_back(static_cast<std::int32_t>(random.below(table.n_out)));
      const auto first = table.values.begin() + tokens.back() * static_cast<int>(table.n_in);
      expected.insert(expected.end(), first, first + table.n_in);
    }
    std::vector<float> out(rows.size() * table.n_in);
    const float scale = shape % 2 == 0 ? 1.0F : 11.3F;
    for (float& element : expected) element *= scale;
    run_step(rig, rows, [&](Backend& backend, const LaunchContext& context) {
      return backend.embedding(
          context,
          {.table = table.view(), .tokens = tokens.data(), .out = out.data(), .scale = scale});
    });
    CAPTURE(threads, shape, name(type), table.n_in);
    REQUIRE(first_difference(out, expected) == -1);
  }
}

TEST_CASE("backend: rms_norm matches doubles and has the reference's bits, also in place") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  SeededRandom random(test_seed() + 500);
  Rig rig(threads);
  Rig reference(0);
  for (int shape = 0; shape < kShapes; ++shape) {
    const auto rows = plain_rows(static_cast<std::uint32_t>(1 + random.below(40)));
    const auto width = static_cast<std::uint32_t>(1 + random.below(1000));
    const auto x = random_floats(random, rows.size() * width, 5.0F);
    const auto weight = random_floats(random, width);
    LeasedMemory memory(width * sizeof(float));
    memory.fill<float>(weight);
    const float scale = shape % 2 == 0 ? 1.0F : 0.7F;
    const auto on = [&](Rig& on_rig, bool in_place) {
      std::vector<float> out = in_place ? x : std::vector<float>(x.size());
      run_step(on_rig, rows, [&](Backend& backend, const LaunchContext& context) {
        return backend.rms_norm(context, {.site = LaunchSite::FfnNorm,
                                          .x = in_place ? out.data() : x.data(),
                                          .weight = memory.at().as<const float>(),
                                          .out = out.data(),
                                          .width = width,
                                          .epsilon = 1e-5F,
                                          .scale = scale});
      });
      return out;
    };
    const auto out = on(rig, false);
    CAPTURE(threads, shape, width, rows.size());
    REQUIRE(first_difference(out, on(reference, false)) == -1);
    REQUIRE(first_difference(out, on(rig, true)) == -1);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      double squares = 0;
      for (std::uint32_t i = 0; i < width; ++i) squares += std::pow(double{x[r * width + i]}, 2);
      for (std::uint32_t i = 0; i < width; i += 13) {
        const double factor = scale / std::sqrt(squares / width + 1e-5F);
        const double expected = x[r * width + i] * factor * weight[i];
        REQUIRE(out[r * width + i] == Approx(expected).epsilon(4e-6).margin(1e-30));
      }
    }
  }
}

TEST_CASE("backend: heads are normed, then rotated in pairs by each row's own angles") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  const RopeStyle style = GENERATE(RopeStyle::Interleaved, RopeStyle::Halves);
  SeededRandom random(test_seed() + 600);
  Rig rig(threads);
  Rig reference(0);
  for (int shape = 0; shape < kShapes / 2; ++shape) {
    const auto rows = plain_rows(static_cast<std::uint32_t>(1 + random.below(20)));
    const auto n_heads = static_cast<std::uint32_t>(1 + random.below(8));
    const auto head_dim = static_cast<std::uint32_t>(2 * (1 + random.below(40)));
    const auto rope_dim = static_cast<std::uint32_t>(2 * random.below(head_dim / 2 + 1));
    const bool has_norms = shape % 3 == 0;
    const bool has_scales = shape % 2 == 0;
    auto scales = random_floats(random, rows.size());
    if (!has_scales) std::ranges::fill(scales, 1.0F);
    const auto x = random_floats(random, rows.size() * n_heads * head_dim);
    const auto weight = random_floats(random, head_dim);
    LeasedMemory norm(head_dim * sizeof(float));
    norm.fill<float>(weight);
    const auto frequencies = rope_frequencies(rope_dim, 10000.0);
    std::vector<float> cos_sin(rows.size() * rope_dim);
    fill_rope_cos_sin(rows, {frequencies}, cos_sin.data());
    std::vector<std::uint32_t> lengths;
    for (const RowRef row : rows) lengths.push_back(row.position + 1);
    const KvLayout layout(2, {.n_kv_heads = n_heads, .head_dim = head_dim, .type = KvType::F32});
    const std::uint64_t kv_seed = random.below(1000);
    // Queries and keys are alike; the keys are read from the blocks.
    const auto on = [&](Rig& on_rig) {
      SeededRandom of_kv(kv_seed);
      KvFixture kv(of_kv, layout, lengths);
      std::vector<float> q = x, k = x, v(x.size());
      run_step(on_rig, rows, [&](Backend& backend, const LaunchContext& context) {
        return backend.prepare_heads(
            context, {.layout = layout.layer(context.layer),
                      .q = q.data(),
                      .k = k.data(),
                      .v = v.data(),
                      .n_heads = n_heads,
                      .query_norm = has_norms ? norm.at().as<const float>() : Leased<const float>(),
                      .key_norm = has_norms ? norm.at().as<const float>() : Leased<const float>(),
                      .epsilon = 1e-5F,
                      .rope_dim = rope_dim,
                      .style = style,
                      .cos_sin = cos_sin.data(),
                      .query_scales = has_scales ? scales.data() : nullptr,
                      .block_tables = kv.block_tables()});
      });
      for (std::size_t i = 0; i < q.size(); ++i) {
        const auto row = static_cast<std::uint32_t>(i / (n_heads * head_dim));
        const auto head = static_cast<std::uint32_t>(i / head_dim % n_heads);
        const float key =
            kv.at(row, 1, 0, head, rows[row].position, static_cast<std::uint32_t>(i % head_dim));
        REQUIRE(key * scales[row] == q[i]);
      }
      return q;
    };
    const auto out = on(rig);
    CAPTURE(threads, shape, n_heads, head_dim, rope_dim, has_norms, has_scales);
    REQUIRE(first_difference(out, on(reference)) == -1);
    for (std::size_t h = 0; h < rows.size() * n_heads; ++h) {
      const double scale = scales[h / n_heads];
      std::vector<double> normed(head_dim);
      double squares = 0;
      for (std::uint32_t e = 0; e < head_dim; ++e)
        squares += std::pow(double{x[h * head_dim + e]}, 2);
      for (std::uint32_t e = 0; e < head_dim; ++e)
        normed[e] = x[h * head_dim + e] *
                    (has_norms ? weight[e] / std::sqrt(squares / head_dim + 1e-5F) : 1.0);
      for (std::uint32_t e = 0; e < head_dim; ++e) {
        double expected = normed[e];
        if (e < rope_dim) {
          const std::uint32_t half = rope_dim / 2;
          const bool halves = style == RopeStyle::Halves;
          const std::uint32_t pair = halves ? e % half : e / 2;
          const bool is_first = halves ? e < half : e % 2 == 0;
          const std::uint32_t other = halves ? (is_first ? e + half : e - half) : e ^ 1;
          const double angle =
              rows[h / n_heads].position * std::pow(10000.0, -2.0 * pair / rope_dim);
          expected = expected * std::cos(angle) +
                     (is_first ? -normed[other] : normed[other]) * std::sin(angle);
        }
        REQUIRE(out[h * head_dim + e] == Approx(expected * scale).margin(has_norms ? 4e-6 : 3e-7));
      }
    }
  }
}

TEST_CASE("backend: swiglu is silu times up, with the reference's bits at every magnitude") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  SeededRandom random(test_seed() + 700);
  Rig rig(threads);
  Rig reference(0);
  for (const float reach : {0.01F, 1.0F, 20.0F, 300.0F}) {
    const auto rows = plain_rows(static_cast<std::uint32_t>(1 + random.below(40)));
    const auto width = static_cast<std::uint32_t>(1 + random.below(700));
    const auto gate = random_floats(random, rows.size() * width, reach);
    const auto up = random_floats(random, rows.size() * width);
    const auto on = [&](Rig& on_rig) {
      std::vector<float> out = gate;
      run_step(on_rig, rows, [&](Backend& backend, const LaunchContext& context) {
        return backend.swiglu(context, {.gate = out.data(), .up = up.data(), .width = width});
      });
      return out;
    };
    const auto out = on(rig);
    CAPTURE(threads, reach, width);
    REQUIRE(first_difference(out, on(reference)) == -1);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const double expected = gate[i] / (1.0 + std::exp(-double{gate[i]})) * up[i];
      REQUIRE(out[i] == Approx(expected).epsilon(1e-6).margin(1e-36));
    }
  }
}

TEST_CASE("backend: a launch without rows runs no unit and leaves every sequence live") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  SeededRandom random(test_seed() + 800);
  Rig rig(threads);
  const Matrix weight(random, TensorType::F32, 4, 4);
  run_step(rig, {}, [&](Backend& backend, const LaunchContext& context) {
    return backend.matmul(
        context,
        {.site = LaunchSite::LmHead, .weight = weight.view(), .x = nullptr, .out = nullptr});
  });
  run_step(rig, {}, [&](Backend& backend, const LaunchContext& context) {
    return backend.swiglu(context, {.gate = nullptr, .up = nullptr, .width = 8});
  });
  REQUIRE(rig.units() == 0);
}

}  // namespace leasehold::testing
