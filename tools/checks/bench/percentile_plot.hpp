/// Latency by percentile as one SVG: both axes logarithmic, so that the tail is as wide as the
/// rest.
///
/// x: 0, 50, 90, 99, 99.9 … percent, each nine the same width; y: µs. Pure.
#pragma once

#include <string>
#include <vector>

namespace leasehold::bench {

struct Curve {
  std::string name;
  std::vector<double> values_us;  ///< Any order; an empty curve is only named.
  double target_us = 0;           ///< Drawn as a mark at the 99th percentile; 0: none.
};

struct Panel {
  std::string title;
  std::vector<Curve> curves;  ///< At most five: more cannot be told apart.
};

/// Panels one below the other.
std::string percentile_svg(const std::vector<Panel>& panels);

}  // namespace leasehold::bench
