#include "tools/checks/bench/batch_bench.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/support/test_paths.hpp"
#include "tools/checks/bench/limits.hpp"

namespace leasehold::bench {

TEST_CASE("batch bench: reports both speeds and the ratio that the limits file names") {
  const auto report =
      measure_batch({.model_path = bundled_model_path(), .sequences = 3, .tokens = 2, .rounds = 3});
  REQUIRE(report.has_value());
  const nlohmann::json& batch = report->at("batch");
  CHECK(batch.at("sequences") == 3);
  CHECK(batch.at("serial_tokens_per_s") > 0);
  CHECK(batch.at("batched_tokens_per_s") > 0);
  const auto checks = check_limits(*report, {{.name = "batch.ratio", .max = {}, .min = 0.0}});
  REQUIRE(checks.size() == 1);
  CHECK(checks[0].value > 0.0);
  CHECK(checks[0].ok);
}

TEST_CASE("batch bench: a missing model is an error") {
  CHECK(measure_batch({.model_path = "/nowhere.gguf"}).error().code == Errc::FileNotFound);
}

}  // namespace leasehold::bench
