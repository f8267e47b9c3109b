/// Compares models of each architecture with the logits that an independent program computed in
/// doubles from the same weights (tests/data/README.md).
#include <catch2/catch.hpp>

#include "tests/model/matrix.hpp"
#include "tests/model/oracle.hpp"

namespace leasehold::testing {
namespace {

constexpr double kTolerance = 2e-4;
constexpr double kAnyTolerance = 3e-4;   // of the logits that no oracle lists
constexpr std::uint32_t kContext = 256;  // of the computation in doubles

}  // namespace

TEST_CASE("model: every architecture agrees with an exact computation") {
  const ExpectedBits row = GENERATE(from_range(expected_architectures()));
  const std::string model = architecture_model(row.model);
  CAPTURE(row.model);
  REQUIRE_FALSE(model.empty());
  PlainModel reference(model, kContext);
  Agreement agreement;
  for (const OracleCase& one : read_oracle(model, ".exact.json")) {
    const std::vector<Logits> ours =
        teacher_forced_logits(model, one, [](ModelConfig& config) { config.n_context = kContext; });
    agreement.compare(one, ours, kTolerance);
    agreement.compare_exactly(teacher_forced_logits(reference, one), ours);
  }
  CAPTURE(agreement.worst_top, agreement.worst_exact, agreement.decided, agreement.wrong);
  CHECK(agreement.wrong == 0);
  CHECK(agreement.decided > 80);
  CHECK(agreement.worst_top <= kTolerance);
  CHECK(agreement.worst_exact <= kAnyTolerance);
}

TEST_CASE("model: every architecture has the committed bits in any batch, chunk and path") {
  const ExpectedBits row = GENERATE(from_range(expected_architectures()));
  const auto digest = [&](Variant variant) {
    variant.arithmetic = arithmetic_of(row);
    return bits_digest(compute_logits(architecture_model(row.model),
                                      matrix_text_below(kFewestTokens, kExactTokens), variant));
  };
  CAPTURE(row.model);
  for (const bool reference : {false, true}) {
    CHECK(digest({.reference = reference, .kv_type = KvType::F16}) == row.kv_f16);
    CHECK(digest({.reference = reference, .kv_type = KvType::F32}) == row.kv_f32);
  }
  for (const SimdPath path : kSimdPaths)
    if (cpu_has(path)) CHECK(digest({.simd = path, .chunking = Chunking::Sixteens}) == row.kv_f16);
  CHECK(digest({.threads = 2,
                .batch = 5,
                .batch_index = 3,
                .chunking = Chunking::Random,
                .scattered = true}) == row.kv_f16);
  CHECK(digest({.batch = 2, .chunking = Chunking::OneByOne}) == row.kv_f16);
}

}  // namespace leasehold::testing
