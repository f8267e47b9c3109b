/// The event log of a worker: one line for each committed step. Threads: the engine's, after
/// `open`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/result.hpp"
#include "ipc/control/event_file.hpp"
#include "worker/engine/engine.hpp"

namespace leasehold {

class StepLog {
 public:
  /// Opens the log; with an empty path nothing is logged. Errors: those of EventFile::open.
  Result<void> open(const std::string& path, std::uint64_t max_bytes);

  /// Appends a line. If the write fails, the line is lost and the worker's log reports the failure.
  void append(const StepReport& report);

 private:
  std::optional<events::EventFile> file_;
};

}  // namespace leasehold
