// Measurements of the engine and the scheduler in this process, on small models and loads.
#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/checks/bench/context_bench.hpp"
#include "tests/checks/bench/engine_bench.hpp"
#include "tests/checks/bench/kernels_bench.hpp"
#include "tests/checks/bench/limits.hpp"
#include "tests/checks/bench/poll_cost.hpp"
#include "tests/checks/bench/serve_bench.hpp"
#include "tests/checks/bench/swap_bench.hpp"
#include "tests/checks/local_model/local_model.hpp"
#include "tests/support/required.hpp"
#include "tests/support/test_paths.hpp"

namespace leasehold::bench {
namespace {

KernelsBenchConfig small_matrix() {
  return {.simd = "scalar",
          .rounds = 1,
          .formats = {"F16", "Q4_K"},
          .rows = {1, 5},
          .n_out = 40,
          .n_in = 256,
          .memory_mib = 1};
}

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

TEST_CASE("engine bench: reports tokens per second in each arithmetic, and their ratios") {
  const auto report =
      measure_engine({.model_path = bundled_model_path(), .prompt_tokens = 20, .rounds = 3});
  REQUIRE(report.has_value());
  const nlohmann::json& engine = report->at("engine");
  for (const char* figure : {"decode", "batch_8", "batch_32", "prefill"}) {
    CAPTURE(figure);
    CHECK(engine.at("f32").at(figure) > 0.0);
    CHECK(engine.at("int8").at(figure) > 0.0);
    CHECK(engine.at("int8_to_f32").at(figure) > 0.0);
  }
  const auto checks =
      check_limits(*report, {{.name = "engine.f32.batch_gain", .max = {}, .min = 0.0}});
  REQUIRE(checks.size() == 1);
  CHECK(checks[0].ok);
}

TEST_CASE("engine bench: the figures of one round are positive numbers") {
  const auto report = measure_figures(
      {.model_path = bundled_model_path(), .prompt_tokens = 20, .decoded_tokens = 2});
  REQUIRE(report.has_value());
  REQUIRE(report->at("figures").size() == 4);
  for (const nlohmann::json& figure : report->at("figures")) CHECK(figure > 0.0);
}

TEST_CASE("local benches: a model that cannot be read is an error") {
  CHECK(measure_engine({.model_path = "/nowhere.gguf"}).error().code == Errc::FileNotFound);
  CHECK(measure_figures({.model_path = "/nowhere.gguf"}).error().code == Errc::FileNotFound);
  CHECK(measure_contexts({.model_path = "/nowhere.gguf"}).error().code == Errc::FileNotFound);
  CHECK(measure_swap({.model_path = "/nowhere.gguf"}).error().code == Errc::FileNotFound);
}

TEST_CASE("context bench: reports the time of each step at each context") {
  const auto report = measure_contexts({.model_path = bundled_model_path(),
                                        .arithmetic = "f32",
                                        .simd = "scalar",
                                        .rounds = 1,
                                        .contexts = {0, 20}});
  REQUIRE(report.has_value());
  const nlohmann::json& context = report->at("context");
  CHECK(context.at("simd") == "scalar");
  for (const char* step : {"1 row", "8 rows", "chunk of 256"})
    for (const char* position : {"0", "20"}) {
      CAPTURE(step, position);
      CHECK(context.at("step_ms").at(step).at(position) > 0.0);
    }
}

TEST_CASE("context bench: two types of keys are measured in one run, with ratios") {
  const auto report = measure_contexts({.model_path = test_data_path("models/kq-llama-q4_k_m.gguf"),
                                        .kv_type = "f16",
                                        .other_kv_type = "q8_0",
                                        .rounds = 1,
                                        .contexts = {20}});
  REQUIRE(report.has_value());
  const nlohmann::json& context = report->at("context");
  const nlohmann::json& other = context.at("other");
  CHECK(context.at("kv_type") == "f16");
  CHECK(other.at("kv_type") == "q8_0");
  CHECK(other.at("ratio").at("1 row").at("20").get<double>() ==
        Approx(other.at("step_ms").at("1 row").at("20").get<double>() /
               context.at("step_ms").at("1 row").at("20").get<double>()));
}

TEST_CASE("kernels bench: reports each format and number of rows, and a line of the table for it") {
  const auto report = measure_kernels(small_matrix());
  REQUIRE(report.has_value());
  const nlohmann::json& path = report->at("kernels").at("paths").at("scalar");
  const std::string text = kernels_text(*report);
  for (const char* format : {"F16", "Q4_K"})
    for (const char* rows : {"1", "5"}) {
      CAPTURE(format, rows, text);
      const nlohmann::json& figures = path.at("matmul").at(format).at(rows);
      for (const char* figure : {"gb_per_s", "gmac_per_s", "unit_us"})
        CHECK(figures.at(figure) > 0.0);
      CHECK(figures.at("share_of_limit") >= 0.0);
      CHECK_FALSE(figures.at("limited_by").get<std::string>().empty());
      const std::string line = std::string("| ") + format + " | scalar | " + rows + " | ";
      CHECK(text.find(line) != std::string::npos);
    }
}

TEST_CASE("kernels bench: a format or a matrix that cannot be measured is an error") {
  KernelsBenchConfig unknown = small_matrix();
  unknown.formats = {"Q9_Z"};
  CHECK(measure_kernels(unknown).error().code == Errc::BadRequest);
  KernelsBenchConfig part_of_a_block = small_matrix();
  part_of_a_block.n_in = 100;
  CHECK(measure_kernels(part_of_a_block).error().code == Errc::BadRequest);
  KernelsBenchConfig too_large = small_matrix();
  too_large.n_out = 1 << 14;
  CHECK(measure_kernels(too_large).error().code == Errc::BadRequest);
}

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

TEST_CASE("launch cost: every launch is measured, whatever the number of threads") {
  const std::uint32_t threads = GENERATE(1, 2, 3);
  const Samples cost = testing::required(measure_launch(threads, 20));
  CHECK(cost.at("empty_us").size() == 20);
  CHECK(figure_of(cost, "empty_us") > 0);
  CHECK(cost.at("meeting_us").size() == 20);
}

TEST_CASE("tick cost: every tick is measured under the wanted load") {
  const Samples ticks = measure_tick_us({.tenants = 3, .running = 8, .waiting = 30, .ticks = 50});
  for (const char* part : {"schedule", "commit"}) {
    CHECK(ticks.at(part).size() == 50);
    CHECK(figure_of(ticks, part) > 0);
  }
}

}  // namespace leasehold::bench
