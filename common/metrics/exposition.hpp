/// Metrics as text, in the format that Prometheus reads. prometheus-cpp writes the text; its
/// counters are not used, because its histograms take a lock that a scrape can hold.
///
/// Threads: one.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/metrics/counters.hpp"

namespace leasehold::metrics {

/// "text/plain; version=0.0.4; charset=utf-8".
std::string_view exposition_content_type();

using Labels = std::vector<std::pair<std::string, std::string>>;

/// A metric, and what one of its samples means.
struct Name {
  std::string_view name;  ///< [a-zA-Z_:][a-zA-Z0-9_:]*; a counter's ends with _total.
  std::string_view help;
};

class Exposition {
 public:
  Exposition();
  ~Exposition();

  // Samples of one name follow each other, and differ in their labels.
  void counter(const Name& name, double value, const Labels& labels = {});
  void gauge(const Name& name, double value, const Labels& labels = {});
  void histogram(const Name& name, const HistogramCounts& counts, const Labels& labels = {});

  std::string text() const;

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace leasehold::metrics
