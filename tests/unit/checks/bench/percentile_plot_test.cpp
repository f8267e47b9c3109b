#include "tests/checks/bench/percentile_plot.hpp"

#include <catch2/catch.hpp>

using namespace leasehold::bench;
using Catch::Matchers::Contains;

TEST_CASE("bench: the plot has a line for a curve with values and only a name for one without") {
  const std::string svg = percentile_svg(
      {{.title = "a & b", .curves = {{"t_refuse", {3, 1, 2}, 25}, {"t_error", {}, 0}}}});
  CHECK_THAT(svg, Contains("a &amp; b"));
  CHECK_THAT(svg, Contains("t_refuse"));
  CHECK_THAT(svg, Contains("t_error"));
  CHECK(svg.find("<polyline") == svg.rfind("<polyline"));
  CHECK(svg.find("<polyline") != std::string::npos);
}

TEST_CASE("bench: the plot draws slower values higher, and all inside the picture") {
  const auto y_of = [](double us) {
    const std::string svg = percentile_svg({{.title = "", .curves = {{"x", {us}, 0}}}});
    const auto comma = svg.find(',', svg.find("points=\""));
    return std::stod(svg.substr(comma + 1));
  };
  CHECK(y_of(1000) < y_of(10));
  CHECK(y_of(1e12) == y_of(1e11));
  CHECK(y_of(0) == y_of(1));
}
