/// Formats the measured values as JSON, tables and plots. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tests/checks/bench/clocks.hpp"
#include "tests/checks/bench/limits.hpp"
#include "tests/checks/bench/statistics.hpp"

namespace leasehold::bench {

/// "t_refuse_us" … over all runs with `headline_threads` compute threads, the same keys in
/// "without_run_queue_delay", and every run in "runs".
nlohmann::json clocks_json(const std::vector<ClockRun>& runs, std::uint32_t headline_threads);

/// A report as text for people.
std::string report_text(const nlohmann::json& report);
std::string limit_checks_text(const std::vector<LimitCheck>& checks);

struct Curve {
  std::string name;
  std::vector<double> values_us;  ///< Any order; an empty curve has only a legend.
  double target_us = 0;           ///< Marked at the 99th percentile; 0: none.
};

struct Panel {
  std::string title;
  std::vector<Curve> curves;  ///< At most five, the number of colours.
};

/// Draws latency by percentile as SVG, with the panels from top to bottom. Both axes are
/// logarithmic: x is 0, 50, 90, 99, 99.9 … percent with the same width for each nine; y is in µs.
std::string percentile_svg(const std::vector<Panel>& panels);

/// One panel per number of compute threads.
std::vector<Panel> clock_panels(const std::vector<ClockRun>& runs);

}  // namespace leasehold::bench
