#include "worker/step_log.hpp"

#include <spdlog/spdlog.h>

namespace leasehold {

Result<StepLog> StepLog::open(const std::string& path) {
  StepLog log;
  if (!path.empty()) log.file_.emplace(TRY(events::EventFile::open(path)));
  return log;
}

void StepLog::append(const StepReport& report) {
  if (!file_ || !report.ran) return;
  const auto written = file_->append(report.summary, report.decided_at);
  if (written) return;
  spdlog::error("event log closed reason=\"{}\"", written.error().detail);
  file_.reset();
}

}  // namespace leasehold
