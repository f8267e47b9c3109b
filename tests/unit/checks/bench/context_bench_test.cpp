#include "tests/checks/bench/context_bench.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/support/test_paths.hpp"

namespace leasehold::bench {

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

TEST_CASE("context bench: a model that cannot be read is an error") {
  CHECK(measure_contexts({.model_path = "/nowhere.gguf"}).error().code == Errc::FileNotFound);
}

}  // namespace leasehold::bench
