/// Adapters of a forward pass: long prompts, and a revocation, which ends the rows that use the
/// adapter and no others.
#include <catch2/catch.hpp>

#include "tests/model/matrix.hpp"
#include "tests/support/required.hpp"

namespace leasehold::testing {
namespace {

/// Sequences 0 and 2 have an adapter each, and 1 has none.
std::unique_ptr<LocalModel> adapted_model(Arithmetic arithmetic, std::uint32_t max_rows) {
  auto model =
      required(LocalModel::load({.model_path = bundled_model_path(),
                                 .threads = 2,
                                 .arithmetic = arithmetic,
                                 .max_rows = max_rows,
                                 .sequences = 3,
                                 .positions = max_rows + 10,
                                 .adapters = {{.rank = 8, .seed = 1}, {.rank = 8, .seed = 2}}}));
  model->use_adapter(0, 0);
  model->use_adapter(2, 1);
  return model;
}

std::vector<float> row_logits(const LocalModel& model, std::uint32_t row) {
  const auto logits = model.logits(row);
  return {logits.begin(), logits.end()};
}

}  // namespace

TEST_CASE("adapters: revoking one ends the rows that use it, and the others keep their bits") {
  const Arithmetic arithmetic = GENERATE(Arithmetic::F32, Arithmetic::Int8);
  const auto calm = adapted_model(arithmetic, 6);
  const auto model = adapted_model(arithmetic, 6);
  for (const auto& each : {calm.get(), model.get()}) REQUIRE(each->forward(text_rows(3, 2)));
  model->revoke_adapter(0);
  for (const auto& each : {calm.get(), model.get()}) REQUIRE(each->forward(text_rows(3, 1, 2)));
  CHECK(calm->live() == 0b111);
  CHECK(model->live() == 0b110);
  for (const std::uint32_t row : {1u, 2u})
    CHECK(same_bits(row_logits(*model, row), row_logits(*calm, row)));
}

TEST_CASE("adapters: the rows of a long prompt have the bits that they have in short steps") {
  constexpr std::uint32_t kRows = 300;
  constexpr std::uint32_t kShort = 50;
  const Arithmetic arithmetic = GENERATE(Arithmetic::F32, Arithmetic::Int8);
  const auto at_once = adapted_model(arithmetic, kRows);
  const auto in_steps = adapted_model(arithmetic, kRows);
  std::vector<LocalRow> rows = text_rows(1, kRows);
  for (LocalRow& row : rows) row.wants_logits = true;
  REQUIRE(at_once->forward(rows));
  for (std::uint32_t first = 0; first < kRows; first += kShort) {
    REQUIRE(in_steps->forward(std::span(rows).subspan(first, kShort)));
    for (std::uint32_t row = 0; row < kShort; ++row)
      REQUIRE(same_bits(row_logits(*in_steps, row), row_logits(*at_once, first + row)));
  }
}

}  // namespace leasehold::testing
