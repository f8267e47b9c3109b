#include "tests/checks/bench/engine_bench.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/checks/bench/limits.hpp"
#include "tests/support/test_paths.hpp"

namespace leasehold::bench {

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

TEST_CASE("engine bench: a model that cannot be read is an error") {
  CHECK(measure_engine({.model_path = "/nowhere.gguf"}).error().code == Errc::FileNotFound);
  CHECK(measure_figures({.model_path = "/nowhere.gguf"}).error().code == Errc::FileNotFound);
}

}  // namespace leasehold::bench
