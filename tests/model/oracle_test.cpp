/// Compares whole models with independent computations, teacher-forced along the oracle's tokens,
/// so that a near tie does not end the comparison.
#include "tests/model/oracle.hpp"

#include <catch2/catch.hpp>
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
