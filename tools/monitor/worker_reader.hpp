/// Reads the pages of metrics of some workers, at most once a second, and only while a page is
/// open.
///
/// Threads: one.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "common/metrics/recent.hpp"
#include "tools/monitor/worker_figures.hpp"

namespace leasehold::monitor {

class WorkerReader {
 public:
  /// `clock` must outlive the reader.
  WorkerReader(std::vector<http::Address> workers, const Clock& clock)
      : workers_(std::move(workers)), items_(clock, [this] { return ask(); }) {}
  WorkerReader(const WorkerReader&) = delete;  // its members hold `this`
  WorkerReader& operator=(const WorkerReader&) = delete;

  /// {"items": [WorkerFigures …]}; instead of the figures of a worker that does not answer,
  /// {"error"}. A worker that hangs delays the answer by up to a second.
  const control::Json& items() { return items_.read(); }

 private:
  control::Json ask() const {
    control::Json items = control::Json::array();
    for (const http::Address& worker : workers_) {
      const auto figures = figures_at(worker);
      items.push_back(figures ? figures->to_json()
                              : control::Json{{"error", figures.error().detail}});
    }
    return {{"items", std::move(items)}};
  }
  static Result<WorkerFigures> figures_at(const http::Address& worker) {
    return worker_figures(TRY(fetch_metrics(worker)));
  }

  std::vector<http::Address> workers_;
  metrics::Recent<control::Json> items_;
};

}  // namespace leasehold::monitor
