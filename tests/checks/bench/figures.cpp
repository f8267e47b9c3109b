#include "tests/checks/bench/figures.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ranges>

#include "common/expects.hpp"
#include "tests/checks/bench/statistics.hpp"

namespace leasehold::bench {
namespace {

using Json = nlohmann::json;

std::vector<double> values_of(const Samples& samples, std::string_view name) {
  const auto found = samples.find(name);
  return found == samples.end() ? std::vector<double>{} : found->second;
}

Json figure(const Samples& samples, const FigureRow& row) {
  const std::string& name = row.samples.empty() ? row.name : row.samples;
  if (row.statistic == Statistic::Distribution)
    return to_json(distribution_of(values_of(samples, name)));
  const double value = figure_of(samples, name, row.statistic);
  if (row.per.empty()) return value;
  const double divisor = figure_of(samples, row.per, row.statistic);
  return divisor > 0 ? value / divisor : 0;
}

}  // namespace

void add_figures(Json& report, const Samples& samples, std::span<const FigureRow> rows) {
  for (const FigureRow& row : rows) place_of(report, row.name) = figure(samples, row);
}

Json figures_of(const Samples& samples, Statistic statistic) {
  Json report = Json::object();
  for (const auto& [name, values] : samples)
    place_of(report, name) = figure(samples, {.name = name, .statistic = statistic});
  return report;
}

double figure_of(const Samples& samples, std::string_view name, Statistic statistic) {
  const std::vector<double> values = values_of(samples, name);
  switch (statistic) {
    case Statistic::Median:
      return median_of(values);
    case Statistic::P99:
      return distribution_of(values).p99;
    case Statistic::Least:
      return values.empty() ? 0 : std::ranges::min(values);
    case Statistic::Distribution:
      break;
  }
  expects(false, "a distribution is not one number");
  return 0;
}

Json& place_of(Json& report, std::string_view name) {
  Json* node = &report;
  for (const auto key : std::views::split(name, '.'))
    node = &(*node)[std::string(key.begin(), key.end())];
  return *node;
}

std::optional<double> number_at(const Json& report, std::string_view name) {
  const Json* node = &report;
  for (const auto key : std::views::split(name, '.')) {
    if (!node->is_object()) return std::nullopt;
    const auto found = node->find(std::string(key.begin(), key.end()));
    if (found == node->end()) return std::nullopt;
    node = &*found;
  }
  return node->is_number() ? std::optional(node->get<double>()) : std::nullopt;
}

}  // namespace leasehold::bench
