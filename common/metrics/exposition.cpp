#include "common/metrics/exposition.hpp"

#include <prometheus/check_names.h>
#include <prometheus/text_serializer.h>

#include <limits>
#include <sstream>

#include "common/expects.hpp"

namespace leasehold::metrics {

using prometheus::ClientMetric;
using prometheus::MetricType;

struct Exposition::Families {
  std::vector<prometheus::MetricFamily> all;

  ClientMetric& add(const Name& name, MetricType type, const Labels& labels) {
    if (all.empty() || all.back().name != name.name) {
      expects(prometheus::CheckMetricName(std::string(name.name)), "a metric has a valid name");
      all.push_back({.name = std::string(name.name),
                     .help = std::string(name.help),
                     .type = type,
                     .metric = {}});
    }
    ClientMetric& metric = all.back().metric.emplace_back();
    for (const auto& [label, value] : labels) metric.label.push_back({label, value});
    return metric;
  }
};

std::string_view exposition_content_type() {
  return "text/plain; version=0.0.4; charset=utf-8";
}

Exposition::Exposition() : families_(std::make_unique<Families>()) {}
Exposition::~Exposition() = default;

void Exposition::counter(const Name& name, double value, const Labels& labels) {
  families_->add(name, MetricType::Counter, labels).counter.value = value;
}

void Exposition::gauge(const Name& name, double value, const Labels& labels) {
  families_->add(name, MetricType::Gauge, labels).gauge.value = value;
}

void Exposition::histogram(const Name& name, const HistogramCounts& counts, const Labels& labels) {
  auto& histogram = families_->add(name, MetricType::Histogram, labels).histogram;
  for (std::size_t i = 0; i < counts.counts.size(); ++i) {
    histogram.sample_count += counts.counts[i];
    histogram.bucket.push_back({.cumulative_count = histogram.sample_count,
                                .upper_bound = i < counts.bounds_s.size()
                                                   ? counts.bounds_s[i]
                                                   : std::numeric_limits<double>::infinity()});
  }
  histogram.sample_sum = counts.sum_s;
}

std::string Exposition::text() const {
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, families_->all);
  return std::move(out).str();
}

}  // namespace leasehold::metrics
