/// Appends every committed step to the event log, when there is one.
#pragma once

#include <optional>
#include <string>

#include "ipc/control/event_file.hpp"
#include "worker/engine/engine.hpp"

namespace leasehold {

/// Threads: one, the engine's.
class StepLog {
 public:
  /// Without a path nothing is logged. Errors: those of EventFile::open.
  static Result<StepLog> open(const std::string& path);

  /// The first write that fails is logged and closes the file.
  void append(const StepReport& report);

 private:
  std::optional<events::EventFile> file_;
};

}  // namespace leasehold
