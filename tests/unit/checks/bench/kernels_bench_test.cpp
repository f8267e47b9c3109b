#include "tests/checks/bench/kernels_bench.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

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

}  // namespace

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

}  // namespace leasehold::bench
