/// The measurement table: samples by name, and rows that say which figure of them a report has.
/// Pure.
///
/// A measurement adds samples while it runs; its table of rows turns them into the report. Names
/// are paths of keys in the report, joined by dots, as in a file of limits.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace leasehold::bench {

using Samples = std::map<std::string, std::vector<double>, std::less<>>;

enum class Statistic : std::uint8_t { Distribution, Median, P99, Least };

struct FigureRow {
  std::string name;
  Statistic statistic = Statistic::Distribution;
  std::string samples = {};  ///< Empty: the samples have the name of the figure.
  /// The figure is divided by the same statistic of these samples; it is 0 if that is 0.
  /// Precondition for a ratio: the statistic is one number.
  std::string per = {};
};

/// Adds the figure of each row to the report.
void add_figures(nlohmann::json& report, const Samples& samples, std::span<const FigureRow> rows);
/// The same statistic of all samples, by their names.
nlohmann::json figures_of(const Samples& samples, Statistic statistic);

/// One number of the samples; 0 without samples. Precondition: the statistic is not Distribution.
double figure_of(const Samples& samples, std::string_view name,
                 Statistic statistic = Statistic::Median);

/// The place of a name in a report, for writing.
nlohmann::json& place_of(nlohmann::json& report, std::string_view name);
/// The number at the name; nullopt if the report has none there.
std::optional<double> number_at(const nlohmann::json& report, std::string_view name);

}  // namespace leasehold::bench
