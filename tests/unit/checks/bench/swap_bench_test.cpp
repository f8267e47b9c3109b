#include "tests/checks/bench/swap_bench.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/checks/local_model/local_model.hpp"
#include "tests/support/required.hpp"
#include "tests/support/test_paths.hpp"

namespace leasehold::bench {
namespace {

constexpr std::uint32_t kText = 40;

std::vector<LocalRow> text_of(TokenId first) {
  std::vector<LocalRow> rows;
  for (std::uint32_t i = 0; i < kText; ++i)
    rows.push_back({.token = first + static_cast<TokenId>(i), .wants_logits = false});
  return rows;
}

std::vector<float> next_logits(LocalModel& model) {
  model.restart(0, kText);
  REQUIRE(model.forward(std::vector<LocalRow>{{.token = 300}}));
  return {model.logits(0).begin(), model.logits(0).end()};
}

}  // namespace

TEST_CASE("swap bench: reports each length that the model's context allows") {
  const nlohmann::json swap =
      testing::required(
          measure_swap({.model_path = bundled_model_path(), .longest = 128, .rounds = 1}))
          .at("swap");
  for (const char* arithmetic : {"f32", "int8"}) {
    const nlohmann::json& lengths = swap.at(arithmetic).at("lengths");
    REQUIRE(lengths.size() == 2);
    for (const char* length : {"64", "128"}) {
      CHECK(lengths.at(length).at("swap_us") > 0.0);
      CHECK(lengths.at(length).at("prefill_us") > 0.0);
    }
    CHECK(swap.at(arithmetic).at("largest_share") > 0.0);
  }
}

TEST_CASE("swap bench: a text that was swapped out and in continues with the same bits") {
  const auto model = testing::required(LocalModel::load({.model_path = bundled_model_path(),
                                                         .max_rows = kText,
                                                         .positions = 2 * kText,
                                                         .has_swap = true}));
  REQUIRE(model->forward(text_of(300)));
  const std::vector<float> expected = next_logits(*model);
  REQUIRE(model->swap_out(0, kText));
  model->restart(0);
  REQUIRE(model->forward(text_of(340)));
  REQUIRE(next_logits(*model) != expected);
  REQUIRE(model->swap_in(0, kText));
  CHECK(next_logits(*model) == expected);
  REQUIRE(model->clear_swap());
  REQUIRE(model->swap_in(0, kText));
  CHECK(next_logits(*model) != expected);
}

}  // namespace leasehold::bench
