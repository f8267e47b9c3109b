/// Draws latency by percentile as SVG. Pure.
///
/// Both axes are logarithmic: x is 0, 50, 90, 99, 99.9 … percent with the same width for each nine;
/// y is in µs.
#pragma once

#include <string>
#include <vector>

namespace leasehold::bench {

struct Curve {
  std::string name;
  std::vector<double> values_us;  ///< Any order; an empty curve has only a legend.
  double target_us = 0;           ///< Marked at the 99th percentile; 0: none.
};

struct Panel {
  std::string title;
  std::vector<Curve> curves;  ///< At most five, the number of colours.
};

/// Draws the panels from top to bottom.
std::string percentile_svg(const std::vector<Panel>& panels);

}  // namespace leasehold::bench
