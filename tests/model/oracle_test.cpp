/// Compares whole models with independent computations, teacher-forced along the oracle's tokens,
/// so that a near tie does not end the comparison.
#include "tests/model/oracle.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>

#include "tests/model/format_table.hpp"
#include "tests/model/matrix.hpp"
#include "tests/support/engine_rig.hpp"

namespace leasehold::testing {
namespace {

struct Measured {
  Agreement ours;    ///< Ours and the oracle; ours and the plain computation.
  Agreement oracle;  ///< The plain computation and the oracle.
};

Measured measure(const std::string& model_path, double tolerance) {
  PlainModel reference(model_path);
  Measured measured;
  for (const OracleCase& one : read_oracle(model_path)) {
    const std::vector<Logits> ours = teacher_forced_logits(model_path, one);
    const std::vector<Logits> plain = teacher_forced_logits(reference, one);
    measured.ours.compare(one, ours, tolerance);
    measured.ours.compare_exactly(plain, ours);
    measured.oracle.compare(one, plain, tolerance);
  }
  return measured;
}

/// The distance from the plain computation over the oracle's first tokens: sums of squares of the
/// differences, and of the divergences of the probabilities among these tokens.
struct Distance {
  double squares = 0;
  double divergence = 0;

  void add(const std::vector<double>& exact, const std::vector<double>& other) {
    for (std::size_t i = 0; i < exact.size(); ++i)
      squares += (other[i] - exact[i]) * (other[i] - exact[i]);
    const std::vector<double> p = shares(exact);
    const std::vector<double> q = shares(other);
    for (std::size_t i = 0; i < p.size(); ++i) divergence += p[i] * std::log(p[i] / q[i]);
  }

  static std::vector<double> shares(const std::vector<double>& logits) {
    std::vector<double> shares;
    double sum = 0;
    for (const double logit : logits) sum += shares.emplace_back(std::exp(logit - logits[0]));
    for (double& share : shares) share /= sum;
    return shares;
  }
};

/// Of the oracle, which rounds activations too, and of int8 arithmetic.
struct Rounding {
  Distance oracle;
  Distance int8;
  std::uint32_t n_steps = 0;
  std::uint32_t n_logits = 0;
};

Rounding measure_rounding(const std::string& model_path) {
  PlainModel reference(model_path);
  Rounding rounding;
  for (const OracleCase& one : read_oracle(model_path)) {
    const std::vector<Logits> int8 = teacher_forced_logits(model_path, one, {}, Arithmetic::Int8);
    const std::vector<Logits> plain = teacher_forced_logits(reference, one);
    for (std::size_t i = 0; i < one.steps.size(); ++i) {
      std::vector<double> exact;
      std::vector<double> by_oracle;
      std::vector<double> by_int8;
      for (const OracleTop& top : one.steps[i].top) {
        exact.push_back(plain[i][static_cast<std::size_t>(top.token)]);
        by_oracle.push_back(top.logit);
        by_int8.push_back(int8[i][static_cast<std::size_t>(top.token)]);
      }
      rounding.oracle.add(exact, by_oracle);
      rounding.int8.add(exact, by_int8);
      rounding.n_logits += static_cast<std::uint32_t>(exact.size());
      ++rounding.n_steps;
    }
  }
  return rounding;
}

/// A file may exceed the oracle's divergence where both are below 1e-3 nats.
void check_rounding(const FormatRow& row, const Rounding& found) {
  const double oracle = std::sqrt(found.oracle.squares / found.n_logits);
  const double int8 = std::sqrt(found.int8.squares / found.n_logits);
  const double oracle_kl = found.oracle.divergence / found.n_steps;
  const double int8_kl = found.int8.divergence / found.n_steps;
  std::printf("%-18s oracle-reference: rms %.4f, mean KL %.3e  int8-reference: %.4f, %.3e\n",
              row.file.data(), oracle, oracle_kl, int8, int8_kl);
  CAPTURE(row.file, oracle, int8, oracle_kl, int8_kl);
  CHECK(int8 <= 1.1 * oracle);
  CHECK(int8_kl <= std::max(1.1 * oracle_kl, 1e-3));
  CHECK(int8 > 0);
}

/// Greedy text without teacher forcing.
std::vector<TokenId> generate_greedy(const std::string& model, const OracleCase& one) {
  EngineRig rig({.model_path = model, .kv_type = KvType::F32});
  const LeaseId lease = rig.grant("oracle", 4);
  REQUIRE(rig.submit(
      rig.request("oracle", lease, "r", one.prompt, static_cast<std::uint32_t>(one.steps.size()))));
  rig.run();
  return rig.outcome("r").tokens;
}

std::vector<TokenId> greedy_tokens(const OracleCase& one) {
  std::vector<TokenId> tokens;
  for (const OracleStep& step : one.steps) tokens.push_back(step.token);
  return tokens;
}

}  // namespace

TEST_CASE("model: every format agrees with its oracle and with the plain computation") {
  const FormatRow row = GENERATE(from_range(std::begin(kFormats), std::end(kFormats)));
  const std::string model = matrix_model(row.file);
  if (model.empty()) {
    WARN("not checked, no test data: " << row.file);
    return;
  }
  const Measured measured = measure(model, row.tolerance);
  std::printf(
      "%-18s oracle-reference %.6f  ours-oracle %.6f  tolerance %.6f  ours-reference %.7f  "
      "decided %d\n",
      row.file.data(), measured.oracle.worst_top, measured.ours.worst_top, row.tolerance,
      measured.ours.worst_exact, measured.ours.decided);
  CAPTURE(row.file, measured.ours.worst_top, measured.ours.worst_exact, measured.ours.wrong,
          measured.oracle.worst_top);
  CHECK(row.tolerance <= 2 * measured.oracle.worst_top);
  CHECK(holds(measured.ours, row.tolerance));
}

TEST_CASE("model: int8 arithmetic differs from the plain computation by no more than the oracle") {
  double all_oracle_kl = 0;
  double all_int8_kl = 0;
  for (const FormatRow& row : kFormats) {
    const std::string model = matrix_model(row.file);
    const bool is_quantised = row.file.find("-q") != std::string_view::npos ||
                              row.file.find("-iq") != std::string_view::npos;
    if (model.empty() || !is_quantised) continue;
    const Rounding found = measure_rounding(model);
    check_rounding(row, found);
    all_oracle_kl += found.oracle.divergence / found.n_steps;
    all_int8_kl += found.int8.divergence / found.n_steps;
  }
  CHECK(all_int8_kl <= all_oracle_kl);
}

TEST_CASE("model: stories260K in f32 writes the oracle's whole text") {
  const std::string model = matrix_model("stories260K-f32");
  for (const OracleCase& one : read_oracle(model))
    CHECK(generate_greedy(model, one) == greedy_tokens(one));
}

TEST_CASE("model: our own model agrees with an independent fp32 computation at every step") {
  const Measured measured = measure(bundled_model_path(), kExactTolerance);
  CAPTURE(measured.ours.worst_top, measured.ours.worst_exact, measured.ours.decided);
  CHECK(holds(measured.ours, kExactTolerance));
}

}  // namespace leasehold::testing
