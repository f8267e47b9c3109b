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
  /// An empty path: nothing is logged. Errors: those of EventFile::open.
  Result<void> open(const std::string& path, std::uint64_t max_bytes);

  /// A step that cannot be written costs only its line; the worker's log says so.
  void append(const StepReport& report);

 private:
  std::optional<events::EventFile> file_;
};

}  // namespace leasehold
