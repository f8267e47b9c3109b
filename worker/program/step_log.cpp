#include "worker/program/step_log.hpp"

#include <spdlog/spdlog.h>

namespace leasehold {

Result<void> StepLog::open(const std::string& path, std::uint64_t max_bytes) {
  if (!path.empty()) file_.emplace(TRY(events::EventFile::open(path, max_bytes)));
  return {};
}

void StepLog::append(const StepReport& report) {
  if (!file_ || !report.ran) return;
  const auto lost_steps = file_->append(report.summary, report.decided_at);
  if (!lost_steps) {
    spdlog::error("the event log file loses steps reason=\"{}\"", lost_steps.error().detail);
  } else if (*lost_steps > 0) {
    spdlog::warn("the event log file continues lost_steps={}", *lost_steps);
  }
}

}  // namespace leasehold
